"""The claims that attention goes by shape more than convolution does, and this by texture."""

import pandas as pd

from vitscope.claims.claim import (
    Claim,
    Evidence,
    Finding,
    attention_against_convolution,
    claim,
    convolutional,
)
from vitscope.claims.comparing import larger, value_in_row
from vitscope.measures.classification.decisions import count_decisions, letters_of

_RULE = (
    "The paper infers this from Fig. 2b (Section 3) and has no such figure. The value is the "
    "shape bias of the first model minus the shape bias of the convolutional model; the claim "
    "holds if it is above zero. Its 95 % interval is computed from the intervals of both models, "
    "and is too wide, since both classify the same images."
)


def _published(points: pd.DataFrame) -> pd.DataFrame:
    """Return the shape bias of published decisions as a point that is counted."""
    value = count_decisions(letters_of(points["decisions"]))["shape_bias"].iloc[0]
    return pd.DataFrame({"measure": ["shape_bias"], "value": [value]})


@claim(
    "Convs go by texture",
    "Geirhos et al. (2019), Fig. 4",
    "difference of the shares of texture and of shape in decisions by either",
    convolutional,
    holds_above=0,
)
def convs_go_by_texture(points: pd.DataFrame) -> Finding | None:
    """The claim of an earlier paper, of networks trained on ImageNet and its cue-conflict stimuli.

    The value is the share of texture in decisions for shape or texture minus that of shape, which
    is the shape bias; the claim holds if it is above zero. Its interval is that of the bias.
    """
    value = 1 - 2 * float(points["value"].iloc[0])
    if not -1 <= value <= 1:
        return None
    if "ci_low" not in points:
        return Finding(value)
    low, high = (1 - 2 * float(points[end].iloc[0]) for end in ("ci_high", "ci_low"))
    return Finding(value, interval=(low, high) if low < high else None)


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
            convs_go_by_texture,
        ),
        value_in_row("shape_bias", "class_name", "all"),
        _published,
    )
}
