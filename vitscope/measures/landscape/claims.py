"""Claims about the training loss around the trained weights: how curved it is, how steep. Fig. 1a.

Their points are two numbers of a model: the curvature, and the spread of the NLL.
"""

from functools import partial

import numpy as np
import pandas as pd

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution
from vitscope.claims.comparing import smaller

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
    values = [curvature(grid), spread(grid)]
    return pd.DataFrame({"measure": ["curvature", "nll_spread"], "value": values})


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
        ),
        _measured,
    )
}
