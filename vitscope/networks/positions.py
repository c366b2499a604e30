"""Where in the image the values of a tensor lie: coordinates are moved as values are moved.

What merely moves values is done again to their coordinates; what computes from a value and its
channels leaves it where it is; a convolution or a pooling gives a new map, that fills the image.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from vitscope.networks.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.operations import COPIES, MAPS, MOVES, PRODUCTS, REDUCTIONS, VIEWS


@dataclass(frozen=True)
class Positions:
    """The image, row and column of every value of a tensor, each of the tensor's dimensions.

    Where they do not change along a dimension, its size is 1. Values without a place are NaN.
    """

    image: Tensor
    row: Tensor
    column: Tensor

    def each(self, change: Callable[[Tensor], Tensor]) -> "Positions":
        """Return what `change` makes of them, as small as it may be."""
        return Positions(*(_narrow(change(t)) for t in (self.image, self.row, self.column)))


def _narrow(tensor: Tensor) -> Tensor:
    """Take the first along every dimension along which all are the same."""
    for dimension in range(tensor.ndim):
        first = tensor.narrow(dimension, 0, 1)
        if tensor.shape[dimension] > 1 and _same(tensor, first):
            tensor = first
    return tensor


def _same(tensor: Tensor, other: Tensor) -> bool:
    both_nan = tensor.isnan() & other.isnan()
    return bool(((tensor == other) | both_nan).all())


class Tracer:
    """Tells the positions of the values of a recorded pass, each computed when it is asked for."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._known: dict[Value, Positions | None] = {}
        height, width = flow.operations[0].shape[2:]
        self._known[Value(0)] = self._map(flow.images, height, width)

    def positions(self, value: Value) -> Positions | None:
        """Return the positions of a value, or None if nobody can tell."""
        # Asked for from the first on: a network may be deeper than Python's stack.
        missing = [value]
        while missing:
            last = missing[-1]
            if last in self._known:
                missing.pop()
                continue
            unknown = [v for v in self._deciding(last) if v not in self._known]
            if unknown:
                missing += unknown[:1]
                continue
            self._known[last] = self._find(last)
        return self._known[value]

    def _deciding(self, value: Value) -> list[Value]:
        """Return the values whose positions decide that of another."""
        operation = self._flow.operations[value.operation]
        operands = operation.operands()
        if operation.name in MOVES:
            return operands
        if operation.name in MAPS:
            return []
        if operation.name in PRODUCTS or operation.name in REDUCTIONS:
            return operands[:1]
        same = [v for v in operands if self._flow.shape_of(v) == operation.shape]
        # The earliest is the stream itself where there is a shortcut, and the nearest to follow.
        return sorted(same, key=lambda v: v.operation)[:1]

    def _map(self, images: int, height: int, width: int) -> Positions:
        return Positions(
            torch.arange(images, dtype=torch.float32).view(-1, 1, 1, 1),
            ((torch.arange(height) + 0.5) / height).view(1, 1, -1, 1),
            ((torch.arange(width) + 0.5) / width).view(1, 1, 1, -1),
        )

    def _find(self, value: Value) -> Positions | None:
        operation = self._flow.operations[value.operation]
        deciding = [self._known[each] for each in self._deciding(value)]
        if operation.name in MAPS:
            whole = len(operation.shape) == 4 and operation.shape[0] == self._flow.images
            return self._map(operation.shape[0], *operation.shape[2:]) if whole else None
        if not deciding or any(each is None for each in deciding):
            return None
        first = deciding[0]
        assert first is not None
        if operation.name in MOVES:
            return self._moved(operation, value.output)
        if operation.name in PRODUCTS:
            return first.each(lambda t: t.nanmean(-1, keepdim=True))
        if operation.name in REDUCTIONS:
            return self._reduced(operation, first)
        return first

    def _reduced(self, operation: Operation, first: Positions) -> Positions | None:
        if len(operation.args) < 2:
            return None
        keep = len(operation.shape) == first.row.ndim
        dims = operation.args[1]
        return first.each(lambda t: t.nanmean(dims, keepdim=keep))

    def _moved(self, operation: Operation, output: int) -> Positions | None:
        try:
            return Positions(
                *(self._move(operation, output, name) for name in ("image", "row", "column"))
            )
        except (RuntimeError, IndexError, TypeError, NotImplementedError):
            return None

    def _move(self, operation: Operation, output: int, name: str) -> Tensor:
        def coordinates(leaf: Any) -> Any:
            if isinstance(leaf, Value):
                known = self._known[leaf]
                assert known is not None
                tensor: Tensor = getattr(known, name)
                return tensor.expand(self._flow.shape_of(leaf))
            if isinstance(leaf, Constant):
                return torch.full((), nan).expand(leaf.shape)
            return leaf

        args, kwargs = tree_map(coordinates, (operation.args, dict(operation.kwargs)))
        for key in ("device", "dtype", "layout", "pin_memory", "memory_format"):
            kwargs.pop(key, None)
        if operation.name in COPIES:
            moved = args[0]
        elif operation.name in VIEWS:
            moved = args[0].reshape(args[1])
        elif operation.name == "constant_pad_nd":
            moved = torch.nn.functional.pad(args[0], args[1], value=nan)
        else:
            moved = operation.function(*args, **kwargs)
        if isinstance(moved, list | tuple):
            moved = moved[output]
        return _narrow(moved)
