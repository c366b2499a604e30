"""The claim that attention among convolutions makes a model robust to corruptions. Fig. 12b."""

from vitscope.claims.alike import AVERAGED, averaging
from vitscope.claims.claim import Claim, Evidence, hybrid_against_convolution, value_in_row
from vitscope.claims.statistics import smaller
from vitscope.corruptions import MEAN

_ERRS_LESS = smaller("error", "mean corruption error")

CLAIMS_ROBUSTNESS = Evidence(
    "corruption_error",
    (
        Claim(
            "msa_makes_convs_robust",
            "Convs with MSAs among them withstand corruptions better than Convs alone",
            "Fig. 12b",
            hybrid_against_convolution,
            _ERRS_LESS,
            "The paper's Fig. 12b, where Alter-ResNet is more robust than ResNet; for pure "
            "transformers it shows the opposite, so they have no such claim.",
        ),
        Claim(
            "averaging_withstands_corruptions",
            "Averaging withstands corruptions better",
            "Park and Kim 2022",
            averaging,
            _ERRS_LESS,
            AVERAGED.format("are robust"),
        ),
    ),
    value_in_row("error", "corruption", MEAN),
)
