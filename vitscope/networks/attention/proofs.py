"""Prove on a network that its attention is read as it is used: times the values, it is the output.

Where heads are mixed behind the softmax, as by talking heads, there is nothing to compare with.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.errors import quoted
from vitscope.networks.attention.reading import Attention, Weights, attending, in_heads_of
from vitscope.networks.building.outputs import own_type
from vitscope.networks.finding.modes import Args, Kwargs, OperationMode, first_tensor
from vitscope.networks.finding.operations import PRODUCTS, is_fused_attention, plain_name

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
    comparing = _Comparing()
    with attending(model, attentions, comparing.read), comparing:
        model(images)
    return comparing.found


class _Comparing(OperationMode):  # type: ignore[no-untyped-call]
    """Compares what follows attention with the product of the values and the attention read."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, float] = {}
        self._name = ""
        self._read: Tensor | None = None

    def read(self, _: int, weights: Weights) -> None:
        """Take attention, whose product with values is to follow."""
        attention = weights.attention
        if attention.mixed:
            return
        places = weights.images * len(attention.arrangement)
        queries, keys = attention.queries.shape[1], attention.keys.shape[1]
        read = torch.full((places, queries, keys), torch.nan)
        for piece in weights.pieces():
            first, last = piece.images.start, piece.images.stop
            where = attention.places(weights.images, first, last, piece.heads)
            read[torch.from_numpy(where)] = piece.weights.float().cpu()
        self._name, self._read = attention.name, read

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, and compare what it returns if it is the product."""
        result = function(*args, **kwargs)
        if self._read is None:
            return result
        name = plain_name(function)
        if is_fused_attention(name):
            output = first_tensor(result)
            assert output is not None
            values = in_heads_of(output, args[2]).expand(*output.shape[:-2], -1, -1)
            self._compare([(values, output)])
        elif name in PRODUCTS:
            left, right = args[-2:]
            self._compare(_products(left, right, result, self._read.shape))
        return result

    def _compare(self, products: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Compare outputs with the attention that was read times values, if there are any."""
        if not products:
            return
        assert self._read is not None
        found = []
        for values, output in products:
            difference = (self._read @ _flat(values) - _flat(output)).abs().max()
            found.append(float(difference / _flat(output).abs().max()))
        self.found[self._name] = min(found)
        self._read = None


def _products(
    left: Tensor, right: Tensor, output: Tensor, read: torch.Size
) -> list[tuple[Tensor, Tensor]]:
    """Return values and output of a product, as attention on the left has them.

    Where it is on the right, all are transposed; both are returned where both could be.
    """
    found: list[tuple[Tensor, Tensor]] = []
    if min(left.ndim, right.ndim) < 2:
        return found
    if _flat(left).shape == read:
        found.append((right, output))
    if _flat(right.mT).shape == read:
        found.append((left.mT, output.mT))
    return found


def _flat(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, *tensor.shape[-2:]).float().cpu()
