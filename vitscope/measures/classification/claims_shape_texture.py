"""The claim that attention goes by shape more than convolution does."""

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution
from vitscope.claims.comparing import larger, value_in_row

_RULE = (
    "The paper infers this from Fig. 2b (Section 3) and has no such figure. The value is the "
    "shape bias of the first model minus the shape bias of the convolutional model; the claim "
    "holds if it is above zero. Its 95 % interval is computed from the intervals of both models, "
    "and is too wide, since both classify the same images."
)

CLAIMS = {
    "shape_texture": Evidence(
        "shape_texture",
        (
            Claim(
                "msa_goes_by_shape",
                "MSAs go by shape more than Convs do",
                "Section 3",
                "difference of shape bias",
                _RULE,
                attention_against_convolution,
                larger("shape_bias"),
                holds_above=0,
            ),
        ),
        value_in_row("shape_bias", "class_name", "all"),
    )
}
