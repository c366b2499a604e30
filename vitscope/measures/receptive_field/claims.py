"""Claims about effective receptive fields: how they grow, and what attention changes early."""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from vitscope.claims.claim import Claim, Finding, attention_against_convolution, every_model
from vitscope.claims.comparing import difference
from vitscope.claims.evidence import Evidence
from vitscope.measures.receptive_field.table import TABLE

# Where networks are compared, in normalized depth.
EARLY = 0.25

_GROWS = (
    "Not in the paper: Luo et al. 2016 find that the effective receptive field of convolutional "
    "networks grows with depth. The value is the rank correlation (Spearman) between depth and "
    "the area of the square around the middle of the image that holds half of all contributions, "
    "over the measured cut points; the claim holds if it is above zero."
)
_EARLY = (
    "Not in the paper: Raghu et al. 2021 find that the lower layers of ViTs have larger effective "
    "receptive fields than the lower layers of ResNets. The area is that of the square that holds "
    "half of all contributions at a quarter of the depth, as a share of the image, interpolated "
    "between the measured cut points. The value is the area for the first model minus the area "
    "for the convolutional model; the claim holds if it is above zero."
)


def _grows(points: pd.DataFrame) -> Finding | None:
    if len(points) < 3 or points["area_50"].nunique() == 1:
        return None
    return Finding(float(spearmanr(points["depth"], points["area_50"]).statistic))


def _early(points: pd.DataFrame) -> float | None:
    depth = points["depth"]
    if points.empty or not depth.min() <= EARLY <= depth.max():
        return None
    return float(np.interp(EARLY, depth, points["area_50"]))


def _larger_early(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    return difference(_early(ours), _early(theirs))


def _in_order(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values("index", ignore_index=True).dropna(subset="area_50")


CLAIMS = {
    "receptive_field": Evidence(
        TABLE,
        (
            Claim(
                "receptive_field_grows",
                "The effective receptive field grows with depth",
                "Luo et al. 2016",
                "rank correlation of area and depth",
                _GROWS,
                every_model,
                _grows,
                holds_above=0,
            ),
            Claim(
                "attention_sees_far_early",
                "Early layers see farther with attention than with convolutions alone",
                "Raghu et al. 2021",
                "difference of areas at a quarter of the depth",
                _EARLY,
                attention_against_convolution,
                _larger_early,
                holds_above=0,
            ),
        ),
        _in_order,
    )
}
