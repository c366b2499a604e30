"""Claims about which blocks raise the feature map variance, and which lower it. Fig. 9 and D.1."""

from functools import partial

from vitscope.claims.by_block import COUNTED, about_blocks, falls, in_order, rises
from vitscope.claims.claim import Curve, Evidence

_RULE = f"The paper's Fig. 9 and D.1; the value is the feature map variance. {COUNTED}"

_claim = partial(about_blocks, _RULE, source="Fig. 9", value="variance")


CLAIMS = {
    "feature_variance": Evidence(
        "feature_variance",
        (
            _claim("msa_reduces_variance", "MSAs reduce the feature map variance", "msa", falls),
            _claim(
                "conv_increases_variance",
                "Convs that do not subsample increase the feature map variance",
                "conv",
                rises,
            ),
            _claim(
                "mlp_increases_variance", "MLPs increase the feature map variance", "mlp", rises
            ),
            _claim(
                "subsampling_reduces_variance",
                "Subsampling reduces the feature map variance",
                None,
                falls,
            ),
        ),
        in_order,
        curve=Curve("depth", "variance"),
    )
}
