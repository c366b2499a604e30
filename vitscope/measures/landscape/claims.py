from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    OTHER_MIXING,
    SAM,
    SPECIFIC,
    Claim,
    Evidence,
    attention_against_convolution,
    attention_against_other_mixing,
    every_pair,
    sam_against_none,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, difference, one_value
from vitscope.measures.landscape.measure import about_radius

_WHY = (
    "The paper's Fig. 1a. The published values are computed from the authors' own grids of it, of "
    "one pair of directions. There the two curvatures are almost equal, and for the NLL alone ViT "
    "has the larger one (38.7 against 25.2): the landscapes differ farther from the trained "
    "weights."
)
_SMALLER = (
    "The value is that of the second model minus that of the first, each a mean over pairs of "
    "random directions; the interval is Welch's over these pairs, on one draw of images."
)


def _distances_to_middle(grid: pd.DataFrame) -> tuple[pd.Series, float]:
    distance = np.sqrt(np.square(grid["x"]) + np.square(grid["y"]))
    return distance, float(distance[distance > 0].min())


def landscape_curvature(grid: pd.DataFrame) -> float:
    """Return the mean second difference of the loss at the middle of a grid; NaN if undefined."""
    distance, step = _distances_to_middle(grid)
    middle = grid.loc[distance == 0, "loss"].iloc[0]
    around = grid.loc[np.isclose(distance, step), "loss"]
    # There are two neighbours along each of the two directions, hence the factor 2.
    return float((around - middle).sum(skipna=False) / (2 * step**2))


def nll_spread(grid: pd.DataFrame) -> float:
    """Return the highest minus the lowest NLL on the ring at `RADIUS`; NaN if any is not finite."""
    distance, step = _distances_to_middle(grid)
    ring = grid.loc[[about_radius(each, step) for each in distance], "nll"]
    return float(ring.max(skipna=False) - ring.min(skipna=False)) if len(ring) else np.nan


def _claimed_landscape_values(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    grids = [grid for _, grid in rows.groupby("direction")]
    middle = (rows["direction"] == 0) & (rows["x"] == 0) & (rows["y"] == 0)
    values = {
        "curvature": [landscape_curvature(grid) for grid in grids],
        "nll_spread": [nll_spread(grid) for grid in grids],
        "accuracy": [rows.loc[middle, "accuracy"].item()],
    }
    pairs = [(measure, value) for measure, each in values.items() for value in each]
    return pd.DataFrame(pairs, columns=["measure", "value"])


def _landscape_difference(measure: str, ours: Points, theirs: Points) -> Found | None:
    one, other = (
        points.where(points.frame["measure"] == measure)["value"][0] for points in (ours, theirs)
    )
    found = difference(np.atleast_1d(one.mean()), np.atleast_1d(other.mean()), -1)
    several = len(one) > 1 and len(other) > 1
    return replace(found, draws=(other, one)) if found and several else found


def _flatter_landscape_is_more_accurate(ours: Points, theirs: Points) -> Found | None:
    flatter = _landscape_difference("nll_spread", ours, theirs)
    if flatter is None or not flatter.value:
        return None
    first, second = (one_value(points, "accuracy") for points in (ours, theirs))
    return difference(first, second, 1 if flatter.value > 0 else -1)


_LESS_SPREAD = Statistic(
    "difference of the spread of the NLL",
    "The spread is the highest minus the lowest NLL at a distance of 0.5, within "
    f"half a step. {_SMALLER}",
    partial(_landscape_difference, "nll_spread"),
)

CLAIMS_LANDSCAPE = Evidence(
    "landscape",
    (
        Claim(
            "msa_flattens_loss_at_minimum",
            "The loss of MSAs is less curved at the trained weights than that of Convs",
            "Fig. 1a",
            attention_against_convolution,
            Statistic(
                "difference of curvature",
                "The curvature is the second difference of the loss (NLL and L2 term) at the "
                "trained weights, over the nearest steps and averaged over both directions. "
                f"{_SMALLER}",
                partial(_landscape_difference, "curvature"),
            ),
            _WHY,
        ),
        Claim(
            "msa_flattens_loss",
            "The loss of MSAs varies less around the trained weights than that of Convs",
            "Fig. 1a",
            attention_against_convolution,
            _LESS_SPREAD,
            _WHY,
        ),
        Claim(
            "specific_weights_flatten_loss",
            f"The loss of MSAs varies less around the trained weights than that of {OTHER_MIXING}",
            "abstract",
            attention_against_other_mixing,
            _LESS_SPREAD,
            SPECIFIC,
        ),
        Claim(
            "sam_flattens_loss",
            "Training with SAM leaves a loss that varies less around the trained weights",
            "Foret et al. 2021",
            sam_against_none,
            _LESS_SPREAD,
            SAM,
        ),
        Claim(
            "flatter_is_more_accurate",
            "The model whose loss varies less has the higher accuracy",
            "Fig. 1a",
            every_pair,
            Statistic(
                "difference of accuracy",
                "The value is the accuracy of the model whose NLL has the smaller mean spread "
                "minus that of the other, at the trained weights and on the images of the "
                "landscape. It has no interval: these are training images, augmented by the "
                "recipe of each model and mixed by whole batches, of which there are few.",
                _flatter_landscape_is_more_accurate,
            ),
            "The paper says that MSAs improve accuracy by flattening the loss (Section 2, "
            "Fig. 1). Of its own two models the flatter one, ViT, is the less accurate.",
        ),
    ),
    _claimed_landscape_values,
)
