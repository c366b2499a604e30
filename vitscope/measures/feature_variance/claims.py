"""Claims about which blocks raise the feature map variance, and which lower it. Fig. 9 and D.1."""

from vitscope.claims.claim import AVERAGED, Claim, Curve, Evidence, averaging, every_model, in_order
from vitscope.claims.statistics import falls, lower_at_cut_points, rises

_FIGURE = "The paper's Fig. 9 and D.1."
_VALUE = "variance", "feature map variance"

CLAIMS_FEATURE_VARIANCE = Evidence(
    "feature_variance",
    (
        Claim(
            "msa_reduces_variance",
            "MSAs reduce the feature map variance",
            "Fig. 9",
            every_model,
            falls("msa", *_VALUE),
            _FIGURE,
        ),
        Claim(
            "conv_increases_variance",
            "Convs that do not subsample increase the feature map variance",
            "Fig. 9",
            every_model,
            rises("conv", *_VALUE),
            _FIGURE,
        ),
        Claim(
            "mlp_increases_variance",
            "MLPs increase the feature map variance",
            "Fig. 9",
            every_model,
            rises("mlp", *_VALUE),
            _FIGURE,
        ),
        Claim(
            "subsampling_reduces_variance",
            "Subsampling reduces the feature map variance",
            "Fig. 9",
            every_model,
            falls(None, *_VALUE),
            _FIGURE,
        ),
        Claim(
            "averaging_reduces_variance",
            "Averaging reduces the feature map variance",
            "Park and Kim 2022",
            averaging,
            lower_at_cut_points(*_VALUE),
            AVERAGED.format("reduce the variance of feature maps"),
        ),
    ),
    in_order,
    curve=Curve("depth", "variance", log=True),
)


_WHY = (
    "Not in the paper, whose Fig. 9 has the variance itself, which follows the scale of the "
    "residual stream; the share is that of all variance of the feature maps that is within "
    "images, over space."
)
_SHARE = "share", "share within images"
_ROWS = (
    (
        "msa_reduces_share",
        "MSAs reduce the share within images",
        falls("msa", *_SHARE),
    ),
    (
        "conv_increases_share",
        "Convs that do not subsample increase the share within images",
        rises("conv", *_SHARE),
    ),
    (
        "mlp_increases_share",
        "MLPs increase the share within images",
        rises("mlp", *_SHARE),
    ),
)

CLAIMS_SPATIAL_SHARE = CLAIMS_VARIANCE_AND_SHARE = Evidence(
    "spatial_share",
    tuple(
        Claim(name, statement, "after Fig. 9", every_model, statistic, _WHY)
        for name, statement, statistic in _ROWS
    ),
    in_order,
)
