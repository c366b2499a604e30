"""Find the ways from one state of the stream to the next, with the branches that sums add to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.addends import (
    NOTHING,
    Addends,
    addends,
    flat_arguments,
    summed_stack,
)
from vitscope.networks.finding.branches import is_spatial_convolution
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value

# These operations take part of their result from each operand.
_PARTIAL = frozenset({"cat", "write", "where"})


class Sum(NamedTuple):
    operation: int
    stream: tuple[int, ...]
    branch: tuple[int, ...]


@dataclass(frozen=True)
class Way:
    """Lists, in order, the additions on the way of a stream from an operation to a sum.

    `unchanged` says that without the branches the stream would arrive unchanged; `direct` says
    that nothing but additions lies between the first addition and the last.
    """

    start: int
    sums: tuple[Sum, ...]
    unchanged: bool
    direct: bool


@dataclass
class Ways:
    """Follows a stream through moves, constant factors and the additions of branches."""

    flow: Dataflow
    _addends: dict[int, Addends] = field(default_factory=dict)

    def addends(self, index: int) -> Addends:
        if index not in self._addends:
            self._addends[index] = addends(self.flow, self.flow.operations[index])
        return self._addends[index]

    def _takes_parts(self, index: int) -> bool:
        return self.flow.operations[index].name in _PARTIAL and index not in self.summed_stacks

    @cached_property
    def summed_stacks(self) -> set[int]:
        """The operations that stack values which a later operation sums up, and moves between."""
        return {
            index
            for operation in self.flow.operations
            for index in summed_stack(self.flow, operation)
        }

    def adds(self, index: int) -> bool:
        """Tell whether an operation adds several values, each of which depends on the images."""
        operation = self.flow.operations[index]
        if operation.name == "copy":
            # In `x[:] += f`, a copy writes the sum to where the stream was.
            source = operation.args[1]
            return isinstance(source, Value) and self.adds(source.operation)
        if operation.name in ops.MOVES | _PARTIAL:
            return False
        index = self._with_addends(index)
        parts, leaves = self.addends(index), flat_arguments(self.flow.operations[index])
        return len({leaves[place] for place in (*parts.added, *parts.computed)}) > 1

    def centres(self, index: int) -> bool:
        """Tell whether an operation subtracts from a value its own mean.

        A norm that is written by hand does so, also where it works on the stream itself, between
        stages: this mean is no branch.
        """
        operation = self.flow.operations[index]
        if operation.name != "sub" or len(operation.operands) != 2:
            return False
        value, mean = operation.operands
        origin = self._origin(value, 0)
        behind = self.ancestors(mean, origin)
        computed = [self.flow.operations[each] for each in behind]
        names = {each.name for each in computed}
        taken = {v.operation for each in computed for v in each.operands}
        means = ops.REDUCTIONS | {"var_mean"}
        plain = names <= means | ops.MOVES | {"mul", "div"}
        return plain and bool(names & means) and taken <= behind | {origin}

    def _with_addends(self, index: int) -> int:
        """Return the operation whose operands are added: the stack that a sum sums up, or it."""
        stack = summed_stack(self.flow, self.flow.operations[index])
        return stack[0] if stack else index

    def way(self, stream: int, end: int) -> Way | None:
        """Return the way of a stream to the operation `end`; None if there is no way with a sum."""
        arriving = self._sums_with_stream(stream, end)
        if end not in arriving:
            return None
        sums: list[Sum] = []
        unchanged = direct = True
        waiting, seen = [end], {end}
        while waiting:
            index = waiting.pop()
            parts, leaves = self.addends(index), flat_arguments(self.flow.operations[index])
            way = self._places_of_stream(index, stream, arriving)
            others = [p for p in parts.added if p not in way]
            name = self.flow.operations[index].name
            direct &= name != "where"
            unchanged &= name != "constant_pad_nd"
            whole = len(way) == 1 or self._takes_parts(index)
            unchanged &= whole and all(parts.added[place] for place in way)
            if others or parts.computed:
                sums.append(Sum(index, tuple(way), (*others, *parts.computed)))
            for place in way:
                before = leaves[place].operation
                if before != stream and before not in seen:
                    seen.add(before)
                    waiting.append(before)
        if not sums:
            return None
        sums.sort()
        return Way(stream, tuple(sums), unchanged, direct and self._sums_follow_directly(sums))

    def _places_of_stream(self, index: int, stream: int, arriving: set[int]) -> list[int]:
        """Return the operands of an operation that carry the stream.

        If one operand of a sum is the stream itself, another that the stream reaches too, as in
        `x + (pool(x) - x)`, belongs to the branch.
        """
        parts, leaves = self.addends(index), flat_arguments(self.flow.operations[index])
        way = [p for p in parts.added if self._carries_stream(leaves[p], stream, arriving)]
        if len(way) > 1 and not self._takes_parts(index):
            itself = [place for place in way if self._origin(leaves[place], stream) == stream]
            return itself if len(itself) == 1 else way
        return way

    def _origin(self, value: Value, first: int) -> int:
        """Return which operation, not before `first`, computed what a value moves or scales."""
        while value.operation > first:
            parts, index = self.addends(value.operation), value.operation
            if len(parts.added) != 1 or parts.computed or self._takes_parts(index):
                break
            (place,) = parts.added
            value = flat_arguments(self.flow.operations[index])[place]
        return value.operation

    def adds_branch(self, index: int, first: int) -> bool:
        """Tell whether an operation adds, to a value that is not before `first`, what works on it.

        This is a unit of a residual stream, whether or not all paths of the network meet there.
        """
        added = self.flow.operations[self._with_addends(index)]
        operands = [*dict.fromkeys(added.operands)]
        for value in operands if self.adds(index) else ():
            origin = self._origin(value, first)
            for other in operands:
                behind = [self.flow.operations[i] for i in self.ancestors(other, origin)]
                works = any(ops.multiplies(op.name) or ops.is_fourier(op.name) for op in behind)
                if works and any(v.operation == origin for op in behind for v in op.operands):
                    return True
        return False

    def _sums_with_stream(self, stream: int, end: int) -> set[int]:
        """Return the operations up to `end` that the stream reaches when added, moved or scaled."""
        arriving: set[int] = set()
        for index in range(stream + 1, end + 1):
            parts, leaves = self.addends(index), flat_arguments(self.flow.operations[index])
            on = [self._carries_stream(leaves[place], stream, arriving) for place in parts.added]
            if all(on) and on if self._takes_parts(index) else any(on):
                arriving.add(index)
        return arriving

    def _carries_stream(self, value: Value, stream: int, arriving: set[int]) -> bool:
        return value.operation == stream or value.operation in arriving

    def _sums_follow_directly(self, sums: Sequence[Sum]) -> bool:
        """Tell whether each sum takes the sum before it, with nothing but copies in between."""
        for before, after in pairwise(sums):
            operation = self.flow.operations[after.operation]
            parts, leaves = self.addends(after.operation), flat_arguments(operation)
            if operation.name in ops.MOVES or len(after.stream) != 1:
                return False
            value = leaves[after.stream[0]]
            while self.flow.operations[value.operation].name in ops.COPIES:
                (value,) = self.flow.operations[value.operation].operands
            if value != Value(before.operation) or not parts.added[after.stream[0]]:
                return False
        return True

    def branches(self, way: Way, origin: int) -> Iterator[Value]:
        """Yield the values that are added to a stream on its way, split into their `parts`."""
        for each in way.sums:
            leaves = flat_arguments(self.flow.operations[each.operation])
            for place in each.branch:
                yield from self.parts(leaves[place], origin)

    def parts(self, value: Value, origin: int) -> Iterator[Value]:
        """Yield the parts whose sum is `value`; split only sums after the operation `origin`."""
        waiting, seen = [value], {value}
        while waiting:
            value = waiting.pop()
            parts = self.addends(value.operation) if value.operation > origin else NOTHING
            within = [*parts.added, *parts.computed]
            if not within or self._takes_parts(value.operation) or parts.computed == (*within,):
                yield value
                continue
            leaves = flat_arguments(self.flow.operations[value.operation])
            for place in within:
                if leaves[place] not in seen:
                    seen.add(leaves[place])
                    waiting.append(leaves[place])

    def shortcut(self, end: int, origin: int) -> Value | None:
        """Return the shortcut among the parts of a sum of which no part is the stream itself.

        The shortcut is the only part that is linear and does not mix positions, except by pooling.
        Return None if there is no such part, or more than one.
        """
        plain = [
            part for part in self.parts(Value(end), origin) if self._may_be_shortcut(part, origin)
        ]
        return plain[0] if len(plain) == 1 else None

    def _may_be_shortcut(self, value: Value, origin: int) -> bool:
        behind = [self.flow.operations[index] for index in self.ancestors(value, origin)]
        return not any(
            _is_nonlinear(operation)
            or ops.is_fourier(operation.name)
            or is_spatial_convolution(self.flow, operation)
            for operation in behind
        )

    def ancestors(self, value: Value, origin: int) -> set[int]:
        found: set[int] = set()
        missing = [value.operation]
        while missing:
            index = missing.pop()
            if index > origin and index not in found:
                found.add(index)
                missing += [v.operation for v in self.flow.operations[index].operands]
        return found


def combines_without_sum(name: str) -> bool:
    """Tell whether an operation, such as a product, is known to combine values without a sum."""
    return name in ops.PRODUCTS | {"mul", "div", "cat", "write", "copy"} or ops.is_fused_attention(
        name
    )


def _is_nonlinear(operation: Operation) -> bool:
    name = operation.name
    if name in ops.NORMALIZATIONS - ops.BATCH_NORMALIZATIONS or ops.is_fused_attention(name):
        return True
    multiplied = name in ops.PRODUCTS | {"mul", "div", "pow", "addcmul"}
    return name in ops.ACTIVATIONS | ops.SOFTMAXES or (multiplied and len(operation.operands) > 1)
