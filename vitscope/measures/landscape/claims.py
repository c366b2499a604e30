"""Claims about the training loss around the trained weights: how curved it is, how steep. Fig. 1a.

Their points are numbers of a model: the curvature, the spread of the NLL, and the accuracy.
"""

from functools import partial

import numpy as np
import pandas as pd

from vitscope.claims.chance import known_share_interval
from vitscope.claims.claim import (
    Claim,
    Evidence,
    Finding,
    attention_against_convolution,
    claim,
    every_pair,
)
from vitscope.claims.comparing import larger, smaller

# The distance from the trained weights at which the paper's landscapes are compared.
_RADIUS = 0.5

_RULE = (
    "The paper's Fig. 1a. The curvature is the second difference of the loss (NLL and L2 term) at "
    "the trained weights, over the nearest steps and averaged over both directions; the spread is "
    "the highest minus the lowest NLL at a distance of 0.5, within half a step. The value is that "
    "of the convolutional model minus that of the first model; the claim holds if it is above "
    "zero. The published values are computed from the authors' own grids of Fig. 1a. There the "
    "two curvatures are almost equal, and for the NLL alone ViT has the larger one (38.7 against "
    "25.2): the landscapes differ farther from the trained weights. The grids show one pair of "
    "random directions: a small difference may change with others."
)


def _distances(grid: pd.DataFrame) -> tuple[pd.Series, float]:
    """Return how far the points of a grid are from its middle, and its step."""
    distance = np.sqrt(np.square(grid["x"]) + np.square(grid["y"]))
    return distance, float(distance[distance > 0].min())


def curvature(grid: pd.DataFrame) -> float:
    """Return the mean second difference of the loss at the middle of a grid; NaN if undefined."""
    distance, step = _distances(grid)
    middle = grid.loc[distance == 0, "loss"].iloc[0]
    around = grid.loc[np.isclose(distance, step), "loss"]
    # Both directions have two of these neighbours each.
    return float((around - middle).sum(skipna=False) / (2 * step**2))


def spread(grid: pd.DataFrame) -> float:
    """Return the range of the NLL about the distance `_RADIUS`; NaN if not all of it is finite."""
    distance, step = _distances(grid)
    # Points that lie on the border count, however their distance is rounded.
    ring = grid.loc[(distance - _RADIUS).abs() <= step / 2 * (1 + 1e-6), "nll"]
    return float(ring.max(skipna=False) - ring.min(skipna=False)) if len(ring) else np.nan


def _measured(grid: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    middle = grid[_distances(grid)[0] == 0].iloc[0]
    accuracy, images = middle["accuracy"], int(middle["images"])
    known = [accuracy, *known_share_interval(accuracy, images)]
    nothing = [np.nan, np.nan]
    rows = {
        "curvature": [curvature(grid), *nothing],
        "nll_spread": [spread(grid), *nothing],
        "accuracy": known if np.isfinite(accuracy) else [accuracy, *nothing],
    }
    columns = ["value", "ci_low", "ci_high"]
    found = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return found.rename_axis("measure").reset_index()


@claim(
    "The model whose loss varies less has the higher accuracy",
    "Fig. 1a",
    "difference of accuracy",
    every_pair,
    holds_above=0,
)
def flatter_is_more_accurate(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """The paper says that MSAs improve accuracy by flattening the loss (Section 2, Fig. 1). Of two
    models, the value is the accuracy of the one whose NLL has the smaller spread minus that of the
    other, at the trained weights and on the images of the landscape, which are augmented training
    images; the claim holds if it is above zero. The 95 % interval of the difference is computed
    from Wilson's intervals of both, and is too wide, since both classify the same images. Of the
    paper's own two models the flatter one, ViT, is the less accurate.
    """
    flatter = smaller("nll_spread")(ours, theirs)
    if flatter is None or not flatter.value:
        return None
    return larger("accuracy")(*((ours, theirs) if flatter.value > 0 else (theirs, ours)))


_claim = partial(
    Claim, source="Fig. 1a", rule=_RULE, about=attention_against_convolution, holds_above=0
)

CLAIMS = {
    "landscape": Evidence(
        "landscape",
        (
            _claim(
                "msa_flattens_loss_at_minimum",
                "The loss of MSAs is less curved at the trained weights than that of Convs",
                measure="difference of curvature",
                find=smaller("curvature"),
            ),
            _claim(
                "msa_flattens_loss",
                "The loss of MSAs varies less around the trained weights than that of Convs",
                measure="difference of the spread of the NLL",
                find=smaller("nll_spread"),
            ),
            flatter_is_more_accurate,
        ),
        _measured,
    )
}
