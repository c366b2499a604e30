import numpy as np

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution, every_model
from vitscope.claims.points import Points
from vitscope.claims.statistics import Statistic, difference, grows_with_depth
from vitscope.files.arrays import Array

# Networks are compared at this normalized depth.
EARLY = 0.25


def _early_receptive_area(points: Points) -> Array | None:
    """Interpolate the area at the depth EARLY; None if this depth is outside the cut points."""
    (depth,), areas = points["depth"], points["area_50"]
    if not len(depth) or not depth.min() <= EARLY <= depth.max():
        return None
    return np.array([np.interp(EARLY, depth, each) for each in areas])


CLAIMS_RECEPTIVE_FIELD = Evidence(
    "receptive_field",
    (
        Claim(
            "receptive_field_grows",
            "The effective receptive field grows with depth",
            "Luo et al. 2016",
            every_model,
            grows_with_depth("area_50", "area"),
            "Not in the paper: Luo et al. 2016 find that the effective receptive field of "
            "convolutional networks grows with depth. The area is that of the square around "
            "the middle of the image that holds half of all contributions; some cut points are "
            "measured.",
        ),
        Claim(
            "attention_sees_far_early",
            "Early layers see farther with attention than with convolutions alone",
            "Raghu et al. 2021",
            attention_against_convolution,
            Statistic(
                "difference of areas at a quarter of the depth",
                "The area is that of the square that holds half of all contributions at a "
                "quarter of the depth, as a share of the image, interpolated between the "
                "measured cut points. The value is the area for the first model minus the area "
                "for the convolutional model.",
                lambda ours, theirs: difference(
                    _early_receptive_area(ours), _early_receptive_area(theirs)
                ),
            ),
            "Not in the paper: Raghu et al. 2021 find that the lower layers of ViTs have "
            "larger effective receptive fields than the lower layers of ResNets.",
        ),
    ),
    lambda rows, _: rows.sort_values("index", ignore_index=True).dropna(subset="area_50"),
)
