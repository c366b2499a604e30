"""Read what attention is used for: the values that it multiplies, and what comes of that.

Where heads are mixed behind the softmax, as by talking heads, no values are multiplied by what is
read.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.networks.attention.reading import Attention, Weights, attending, in_heads_of
from vitscope.networks.finding.modes import Args, Kwargs, OperationMode, first_tensor
from vitscope.networks.finding.operations import PRODUCTS, is_fused_attention, plain_name


@dataclass(frozen=True)
class Use:
    """An attention as it was read, the values, and what the network computed of both.

    Each has two dimensions behind one of all places, which is in the order of the network.
    """

    attention: Attention
    images: int
    weights: Tensor
    values: Tensor
    output: Tensor

    @property
    def difference(self) -> float:
        """How far weights times values is from the output, as a share of the largest output."""
        difference = (self.weights @ self.values - self.output).abs().max()
        return float(difference / self.output.abs().max())

    def by_head(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return weights, values and output: (images, windows, heads, rows, columns)."""
        places = self.attention.places(self.images, 0, self.images, slice(None))
        where = torch.from_numpy(places)
        return self.weights[where], self.values[where], self.output[where]


@contextmanager
def using(
    model: nn.Module, attentions: Sequence[Attention], see: Callable[[Use], None]
) -> Iterator[None]:
    """Call `see` where attention that is not mixed has been used, in passes in the block."""
    mode = _Using(see)
    with attending(model, attentions, mode.read), mode:
        yield


class _Using(OperationMode):  # type: ignore[no-untyped-call]
    """Finds the product of the attention that was read last and its values."""

    def __init__(self, see: Callable[[Use], None]) -> None:
        super().__init__()
        self._see = see
        self._last: tuple[Attention, int, Tensor] | None = None

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
        self._last = attention, weights.images, read

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, and show it if it is the product."""
        result = function(*args, **kwargs)
        if self._last is None:
            return result
        name = plain_name(function)
        products: Sequence[tuple[Tensor, Tensor]] = []
        if is_fused_attention(name):
            output = first_tensor(result)
            assert output is not None
            products = [(in_heads_of(output, args[2]).expand(*output.shape[:-2], -1, -1), output)]
        elif name in PRODUCTS:
            left, right = args[-2:]
            products = _products(left, right, result, self._last[2].shape)
        if products:
            uses = [Use(*self._last, *map(_flat, product)) for product in products]
            self._last = None
            self._see(min(uses, key=lambda use: use.difference))
        return result


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
