"""Claims about which blocks raise the feature map variance, and which lower it. Fig. 9 and D.1."""

from functools import partial

from vitscope.claims.alike import AVERAGED, averaging, lower_at_cut_points
from vitscope.claims.by_block import COUNTED, about_blocks, falls, in_order, rises
from vitscope.claims.claim import Claim, Curve, Evidence

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
            Claim(
                "averaging_reduces_variance",
                "Averaging reduces the feature map variance",
                "Park and Kim 2022",
                "share of cut points",
                f"{AVERAGED.format('reduce the variance of feature maps')} A cut point is in "
                "favour if the feature map variance of the first model is lower there.",
                averaging,
                lower_at_cut_points("variance"),
            ),
        ),
        in_order,
        curve=Curve("depth", "variance"),
    )
}
