"""Prove on a network that its attention is read as it is used: times the values, it is the output.

Where heads are mixed behind the softmax, as by talking heads, there is nothing to compare with.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from vitscope.errors import quoted
from vitscope.networks.attention.reading import Attention
from vitscope.networks.attention.use import Use, using
from vitscope.networks.building.outputs import own_type

# Of the largest output: what rounding makes of float32, and how many times that of other types.
TOLERANCE, ROUNDINGS = 1e-4, 4


def unlike(model: nn.Module, attentions: Sequence[Attention], images: Tensor) -> list[str]:
    """Say of which attention the output is not what was read times the values."""
    tolerance = max(TOLERANCE, ROUNDINGS * torch.finfo(own_type(model)).eps)
    return [
        f"the attention of {quoted(name)} is not what was read of it"
        for name, difference in differences(model, attentions, images).items()
        if not difference <= tolerance
    ]


@torch.inference_mode()
def differences(
    model: nn.Module, attentions: Sequence[Attention], images: Tensor
) -> Mapping[str, float]:
    """Return how far attention times values is from what the network computed of them.

    For each attention by its name, as a share of the largest output; mixed heads are left out.
    """
    found: dict[str, float] = {}

    def compare(use: Use) -> None:
        found[use.attention.name] = use.difference

    with using(model, attentions, compare):
        model(images)
    return found
