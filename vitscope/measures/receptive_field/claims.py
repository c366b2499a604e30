"""Claims about effective receptive fields: how they grow, and what attention changes early."""

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    Evidence,
    Finding,
    attention_against_convolution,
    claim,
    every_model,
    rank_correlation,
)
from vitscope.claims.comparing import difference

# Where networks are compared, in normalized depth.
EARLY = 0.25


@claim(
    "The effective receptive field grows with depth",
    "Luo et al. 2016",
    "rank correlation of area and depth",
    every_model,
    holds_above=0,
)
def receptive_field_grows(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Luo et al. 2016 find that the effective receptive field of convolutional
    networks grows with depth. The value is the rank correlation (Spearman) between depth and the
    area of the square around the middle of the image that holds half of all contributions, over the
    measured cut points; the claim holds if it is above zero.
    """
    return rank_correlation(points["depth"], points["area_50"])


def _early(points: pd.DataFrame) -> float | None:
    depth = points["depth"]
    if points.empty or not depth.min() <= EARLY <= depth.max():
        return None
    return float(np.interp(EARLY, depth, points["area_50"]))


@claim(
    "Early layers see farther with attention than with convolutions alone",
    "Raghu et al. 2021",
    "difference of areas at a quarter of the depth",
    attention_against_convolution,
    holds_above=0,
)
def attention_sees_far_early(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Not in the paper: Raghu et al. 2021 find that the lower layers of ViTs have larger effective
    receptive fields than the lower layers of ResNets. The area is that of the square that holds
    half of all contributions at a quarter of the depth, as a share of the image, interpolated
    between the measured cut points. The value is the area for the first model minus the area for
    the convolutional model; the claim holds if it is above zero.
    """
    return difference(_early(ours), _early(theirs))


CLAIMS = {
    "receptive_field": Evidence(
        "receptive_field",
        (receptive_field_grows, attention_sees_far_early),
        lambda rows, _: rows.sort_values("index", ignore_index=True).dropna(subset="area_50"),
    )
}
