from vitscope.claims.claim import (
    AVERAGED,
    OTHER_MIXING,
    SPECIFIC,
    Curve,
    Evidence,
    attention_against_fixed_weights,
    averaging,
    claims_of,
    every_model,
    in_order,
)
from vitscope.claims.statistics import falls, falls_more, lower_at_cut_points, rises

_VALUE = "variance", "feature map variance"

CLAIMS_FEATURE_VARIANCE = Evidence(
    "feature_variance",
    claims_of(
        "Fig. 9",
        every_model,
        "The paper's Fig. 9 and D.1.",
        ("msa_reduces_variance", "MSAs reduce the feature map variance", falls("msa", *_VALUE)),
        (
            "conv_increases_variance",
            "Convs that do not subsample increase the feature map variance",
            rises("conv", *_VALUE),
        ),
        ("mlp_increases_variance", "MLPs increase the feature map variance", rises("mlp", *_VALUE)),
        (
            "subsampling_reduces_variance",
            "Subsampling reduces the feature map variance",
            falls(None, *_VALUE),
        ),
    )
    + claims_of(
        "after Fig. 9",
        attention_against_fixed_weights,
        SPECIFIC,
        (
            "msa_reduces_variance_more",
            f"MSAs reduce the feature map variance more than {OTHER_MIXING}",
            falls_more("msa", *_VALUE, log=True),
        ),
    )
    + claims_of(
        "Park and Kim 2022",
        averaging,
        AVERAGED.format("reduce the variance of feature maps"),
        (
            "averaging_reduces_variance",
            "Averaging reduces the feature map variance",
            lower_at_cut_points(*_VALUE),
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
CLAIMS_SPATIAL_SHARE = CLAIMS_VARIANCE_AND_SHARE = Evidence(
    "spatial_share",
    claims_of(
        "after Fig. 9",
        every_model,
        _WHY,
        ("msa_reduces_share", "MSAs reduce the share within images", falls("msa", *_SHARE)),
        (
            "conv_increases_share",
            "Convs that do not subsample increase the share within images",
            rises("conv", *_SHARE),
        ),
        ("mlp_increases_share", "MLPs increase the share within images", rises("mlp", *_SHARE)),
    ),
    in_order,
)
