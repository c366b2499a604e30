"""Record every operation of a forward pass, and which values each of them takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor

from vitscope.errors import quoted
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.cut_points import At, CutPoint, OperationId
from vitscope.networks.finding.leaves import leaves


@dataclass(frozen=True)
class Value:
    operation: int
    output: int = 0


@dataclass(frozen=True)
class Constant:
    """A tensor that does not depend on the images; a pass on shapes may not know its values."""

    shape: tuple[int, ...]
    tensor: Tensor = field(compare=False, repr=False)


@dataclass
class Operation:
    """An operation whose result depends on the images.

    Its arguments hold a `Value` or a `Constant` in place of each tensor.
    """

    function: Any
    name: str
    which: OperationId
    shapes: tuple[tuple[int, ...], ...]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        return self.which.module

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shapes[0]

    @cached_property
    def operands(self) -> list[Value]:
        return [leaf for leaf in leaves((self.args, self.kwargs)) if isinstance(leaf, Value)]


@dataclass(frozen=True)
class Passage:
    """Marks a value as the first tensor that a module is called with, or that it returns."""

    value: Value
    module: str
    at: At


@dataclass
class Dataflow:
    """Holds the operations of a forward pass in order; the first stands for the images."""

    images: int
    operations: list[Operation]
    result: Value
    passages: list[Passage]
    calls: Mapping[str, int]
    # The number of operations before each module first runs.
    begun: Mapping[str, int]

    def shape_of(self, value: Value) -> tuple[int, ...]:
        return self.operations[value.operation].shapes[value.output]

    def value_of(self, point: CutPoint) -> Value:
        if point.operation is not None:
            found = (
                Value(i) for i, each in enumerate(self.operations) if each.which == point.operation
            )
        else:
            place = point.module or "", point.at
            found = (each.value for each in self.passages if (each.module, each.at) == place)
        value = next(found, None)
        if value is None:
            raise ops.another_path(f"never came to the cut point {quoted(point.name)}")
        return value

    @cached_property
    def users(self) -> dict[int, list[int]]:
        users: dict[int, list[int]] = {}
        for index, operation in enumerate(self.operations):
            for value in operation.operands:
                users.setdefault(value.operation, []).append(index)
        return users

    def needed(self) -> list[int]:
        needed = {self.result.operation}
        for index in range(self.result.operation, -1, -1):
            if index in needed:
                needed.update(value.operation for value in self.operations[index].operands)
        return sorted(needed)

    def dominators(self) -> list[int]:
        """Return the operations that lie on every path from the images to the result."""
        order = self.needed()
        last_use = dict.fromkeys(order, 0)
        for index in order:
            for value in self.operations[index].operands:
                last_use[value.operation] = index
        found, furthest = [], 0
        for index in order:
            # If a later operation uses an earlier value, a path leads around this operation.
            if furthest <= index:
                found.append(index)
            furthest = max(furthest, last_use[index])
        return found
