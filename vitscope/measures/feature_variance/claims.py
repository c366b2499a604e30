from vitscope.claims.claim import (
    AVERAGED,
    OTHER_MIXING,
    SPECIFIC,
    Evidence,
    ScoredCurve,
    attention_against_other_mixing,
    averaging,
    every_model,
    in_order,
    make_claims,
    rows_of_blocks,
)
from vitscope.claims.statistics import falls, falls_more, lower_at_cut_points

_VALUE = "variance", "feature map variance"
_NORMALIZED = "normalized_variance", "normalized variance"

CLAIMS_FEATURE_VARIANCE = Evidence(
    "feature_variance",
    make_claims(
        "Fig. 9",
        every_model,
        "The paper's Fig. 9 and D.1.",
        *rows_of_blocks("variance", *_VALUE, log=True),
        (
            "subsampling_reduces_variance",
            "Subsampling reduces the feature map variance",
            falls(None, *_VALUE, log=True),
        ),
    )
    + make_claims(
        "after Fig. 9",
        attention_against_other_mixing,
        SPECIFIC,
        (
            "msa_reduces_variance_more",
            f"MSAs reduce the feature map variance more than {OTHER_MIXING}",
            falls_more("msa", *_VALUE, log=True),
        ),
    )
    + make_claims(
        "Park and Kim 2022",
        averaging,
        AVERAGED.format("reduce the variance of feature maps"),
        (
            "averaging_reduces_variance",
            "Averaging reduces the feature map variance",
            lower_at_cut_points(*_VALUE, log=True),
        ),
    ),
    in_order,
    curve=ScoredCurve("depth", "variance", log=True),
)

CLAIMS_NORMALIZED_VARIANCE = Evidence(
    "normalized_variance",
    make_claims(
        "after Fig. 9",
        every_model,
        "Not in the paper, whose Fig. 9 has the variance of the residual stream. A block that only "
        "shrinks the stream lowers that variance; the next block normalizes what it reads, and the "
        "normalized variance tells whether positions are more alike there.",
        *rows_of_blocks("normalized_variance", *_NORMALIZED, log=True),
    )
    + make_claims(
        "after Fig. 9",
        attention_against_other_mixing,
        SPECIFIC,
        (
            "msa_reduces_normalized_variance_more",
            f"MSAs reduce the normalized variance more than {OTHER_MIXING}",
            falls_more("msa", *_NORMALIZED, log=True),
        ),
    ),
    in_order,
)

_WHY = (
    "Not in the paper, whose Fig. 9 has the variance itself, which follows the scale of the "
    "residual stream; the share is that of all variance of the feature maps that is within "
    "images, over space."
)
CLAIMS_SPATIAL_SHARE = CLAIMS_VARIANCE_AND_SHARE = Evidence(
    "spatial_share",
    make_claims(
        "after Fig. 9",
        every_model,
        _WHY,
        *rows_of_blocks("share", "share", "share within images", log=True),
    ),
    in_order,
)
