"""Claims about which blocks raise the share of the variance that is within images."""

from vitscope.claims.claim import Claim, Evidence, every_model, in_order
from vitscope.claims.statistics import falls, rises

_WHY = (
    "Not in the paper, whose Fig. 9 has the variance itself, which follows the scale of the "
    "residual stream; the share is that of all variance of the feature maps that is within "
    "images, over space."
)
_VALUE = "share", "share within images"
_ROWS = (
    ("msa_reduces_share", "MSAs reduce the share within images", falls("msa", *_VALUE)),
    (
        "conv_increases_share",
        "Convs that do not subsample increase the share within images",
        rises("conv", *_VALUE),
    ),
    ("mlp_increases_share", "MLPs increase the share within images", rises("mlp", *_VALUE)),
)

CLAIMS_SPATIAL_SHARE = CLAIMS_VARIANCE_AND_SHARE = Evidence(
    "spatial_share",
    tuple(
        Claim(name, statement, "after Fig. 9", every_model, statistic, _WHY)
        for name, statement, statistic in _ROWS
    ),
    in_order,
)
