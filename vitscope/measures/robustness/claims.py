"""The claim that attention among convolutions makes a model robust to corruptions. Fig. 12b."""

from vitscope.claims.alike import AVERAGED, averaging
from vitscope.claims.claim import Claim, Evidence, hybrid_against_convolution
from vitscope.claims.comparing import smaller, value_in_row

_RULE = (
    "The paper's Fig. 12b, where Alter-ResNet is more robust than ResNet; for pure transformers "
    "it shows the opposite, so they have no such claim. The value is the mean corruption error of "
    "the convolutional model minus that of the first model; the claim holds if it is above zero. "
    "Its 95 % interval is computed from the intervals of both models, and is too wide, since both "
    "classify the same images, each in many views."
)

CLAIMS = {
    "robustness": Evidence(
        "corruption_error",
        (
            Claim(
                "msa_makes_convs_robust",
                "Convs with MSAs among them withstand corruptions better than Convs alone",
                "Fig. 12b",
                "difference of mean corruption error",
                _RULE,
                hybrid_against_convolution,
                smaller("error"),
                holds_above=0,
            ),
            Claim(
                "averaging_withstands_corruptions",
                "Averaging withstands corruptions better",
                "Park and Kim 2022",
                "difference of mean corruption error",
                f"{AVERAGED.format('are robust')} The value is the mean corruption error of the "
                "second model minus that of the first; the claim holds if it is above zero.",
                averaging,
                smaller("error"),
                holds_above=0,
            ),
        ),
        value_in_row("error", "corruption", "mean"),
    )
}
