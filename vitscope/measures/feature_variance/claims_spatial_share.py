"""Claims about which blocks raise the share of the variance that is within images."""

from functools import partial

from vitscope.claims.by_block import COUNTED, about_blocks, falls, in_order, rises
from vitscope.claims.claim import Evidence

_RULE = (
    "Not in the paper, whose Fig. 9 has the variance itself, which follows the scale of the "
    "residual stream; the value is the share of all variance of the feature maps that is within "
    f"images, over space. {COUNTED}"
)

_claim = partial(about_blocks, _RULE, source="after Fig. 9", value="share")

CLAIMS = dict.fromkeys(
    ("spatial_share", "variance_and_share"),
    Evidence(
        "spatial_share",
        (
            _claim("msa_reduces_share", "MSAs reduce the share within images", "msa", falls),
            _claim(
                "conv_increases_share",
                "Convs that do not subsample increase the share within images",
                "conv",
                rises,
            ),
            _claim("mlp_increases_share", "MLPs increase the share within images", "mlp", rises),
        ),
        in_order,
    ),
)
