"""A recorded pass of a network, and what can be asked about it."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set
from functools import cached_property
from itertools import pairwise

from torch import nn

from vitscope.networks.finding.branches import Branches
from vitscope.networks.finding.cut_points import Kind, Layout
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value
from vitscope.networks.finding.operations import (
    ADDITIONS,
    COPIES,
    MOVES,
    NORMALIZATIONS,
    PARTS_OF_NORMS,
    REDUCTIONS,
    inside,
    is_fourier,
    multiplies,
)
from vitscope.networks.finding.positions import Tracer
from vitscope.networks.finding.sums import Way, Ways, is_mixed
from vitscope.networks.finding.tensor_layouts import layout_of


class Maps:
    """The layouts of what operations return, each found when it is asked for."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._tracer = Tracer(flow)
        self._known: dict[int, Layout | None] = {}

    def layout(self, index: int) -> Layout | None:
        """Return the layout of a feature map; None for what is none."""
        if index not in self._known:
            positions = self._tracer.positions(Value(index))
            shape = self._flow.operations[index].shape
            self._known[index] = None if positions is None else layout_of(positions, shape)
        return self._known[index]

    def size(self, index: int) -> tuple[int, int] | None:
        """Return the height and width of a feature map."""
        layout, shape = self.layout(index), self._flow.operations[index].shape
        if layout is None:
            return None
        if layout.grid is not None:
            return layout.grid
        return shape[layout.order.index("h")], shape[layout.order.index("w")]

    def channel(self, index: int) -> int | None:
        """Return which dimension of a feature map is its channels."""
        layout = self.layout(index)
        return None if layout is None else layout.order.index("c")

    def channels(self, index: int) -> int:
        """Return how many channels a feature map has; 0 for what is none."""
        channel = self.channel(index)
        return 0 if channel is None else self._flow.operations[index].shape[channel]


class RecordedPass:
    """What a network computes, where every path meets, and which values are maps."""

    def __init__(self, model: nn.Module, flow: Dataflow) -> None:
        self.flow = flow
        self.operations = flow.operations
        self.modules = [name for name, _ in model.named_modules() if name]
        self.maps = Maps(flow)
        self.ways = Ways(flow)
        self.branches = Branches(flow)
        self._found_ways: dict[int, Way | None] = {}
        self.order = flow.needed()
        # A stack that is summed up again is part of its sum.
        stacks = self.ways.summed_stacks
        self.dominators = [index for index in flow.dominators() if index not in stacks]

    def joins(self, index: int) -> bool:
        """Tell whether an operation adds values that both depend on the images."""
        operation = self.operations[index]
        if self.ways.adds(index) or self._way_of_stream(index):
            return True
        # Where a shortcut has fewer channels than its branch, it is added to the first of them.
        return operation.name in ("cat", "write") and any(
            self._adds_stream(value.operation, operation.shape, self.before(index))
            for value in operation.operands()
        )

    def _way_of_stream(self, index: int) -> Way | None:
        if index not in self._found_ways:
            way = None if self._appends(index) else self.ways.way(self.before(index), index)
            self._found_ways[index] = way
        return self._found_ways[index]

    def _appends(self, index: int) -> bool:
        """Tell whether an operation appends channels to others, which is no sum of two maps."""
        operation, channel = self.operations[index], self.maps.channel(index)
        if operation.name != "cat" or channel is None:
            return False
        along = [*operation.args[1:2], operation.kwargs.get("dim", 0)][0]
        return bool(along % len(operation.shape) == channel)

    def way(self, index: int) -> Way | None:
        """Return the way of the stream to a join; None if nobody can tell which side it is."""
        way = self._way_of_stream(index)
        if way is None and self.ways.adds(index):
            shortcut = self.ways.shortcut(index, self.before(index))
            if shortcut is None or self.maps.layout(shortcut.operation) is None:
                return None
            return self.ways.way(shortcut.operation, index)
        return way

    def _adds(self, index: int) -> bool:
        operation = self.operations[index]
        return operation.name in ADDITIONS and len(set(operation.operands())) > 1

    def _adds_stream(self, index: int, shape: tuple[int, ...], stream: int) -> bool:
        """Tell whether an operation adds to some channels of a map of a shape what is a stream."""
        operation, channel = self.operations[index], self.maps.channel(index)
        if index <= stream or operation.name not in ADDITIONS or channel is None:
            return False
        others = [d for d in range(len(shape)) if d != channel]
        same = len(operation.shape) == len(shape) and all(
            operation.shape[d] == shape[d] for d in others
        )
        return same and any(self.moved_from(v, stream) for v in operation.operands())

    @cached_property
    def map_joins(self) -> list[int]:
        """The joins whose sum is a map."""
        return [d for d in self.dominators if self.joins(d) and self.maps.layout(d)]

    @cached_property
    def norms(self) -> dict[int, int]:
        """The norms of sums, by the joins before them: of modules that normalize all their sums.

        A norm behind the last of several joins belongs to the network, not to the block.
        """
        found = {d: self._norm_behind(d) for d in self.map_joins}
        without = {self.operations[d].module for d, norm in found.items() if norm is None}
        kept = {d: norm for d, norm in found.items() if self.operations[d].module not in without}
        return {d: norm for d, norm in kept.items() if norm is not None}

    def followed_by(self, end: int, names: Set[str]) -> int | None:
        """Return the operation of the same module that takes a sum and nothing else, if any."""
        last = end
        for index in self.dominators[bisect_right(self.dominators, end) :]:
            following = self.operations[index]
            if following.operands()[:1] != [Value(last)]:
                return None
            if not inside(following.module, self.operations[end].module):
                return None
            if following.name in names:
                return index
            if following.name not in COPIES:
                return None
            # The sum in another type is the sum.
            last = index
        return None

    def _norm_behind(self, end: int) -> int | None:
        """Return where the norm of a sum ends, of one operation or of several, in the same block.

        It may see the sum moved, and ends with the scale and the bias of its module.
        """
        block, size = self.operations[end].module, self.maps.size(end)
        normalizes, norm = False, None
        for before, index in pairwise(self.dominators[bisect_left(self.dominators, end) :]):
            within = self.between(before, index)
            if not all(inside(op.module, block) and op.name in PARTS_OF_NORMS for op in within):
                break
            if norm is not None:
                last = self.operations[norm]
                if within[-1].module != last.module or within[-1].name not in ("mul", "add"):
                    break
            names = {op.name for op in within}
            divides = bool(names & REDUCTIONS) and within[-1].name in ("mul", "div")
            normalizes |= bool(names & NORMALIZATIONS) or divides
            if self.joins(index):
                break
            if normalizes and self.maps.size(index) == size:
                norm = index
        return norm

    def moved_from(self, value: Value, origin: int) -> bool:
        """Tell whether a value is another, or that moved."""
        while value.operation > origin:
            operation = self.operations[value.operation]
            if operation.name not in MOVES or len(operation.operands()) != 1:
                return False
            value = operation.operands()[0]
        return value.operation == origin

    def before(self, index: int) -> int:
        """Return the last dominator before an operation."""
        return self.dominators[bisect_left(self.dominators, index) - 1]

    def indices(self, start: int, end: int) -> list[int]:
        """Return which operations are behind one, up to another."""
        first, last = bisect_right(self.order, start), bisect_right(self.order, end)
        return self.order[first:last]

    def between(self, start: int, end: int) -> list[Operation]:
        """Return the operations behind one, up to another."""
        return [self.operations[i] for i in self.indices(start, end)]

    def kind(self, start: int, end: int) -> Kind:
        """Return the kind of what lies between two operations, all of it taken for one branch."""
        return self._kind_of(self.indices(start, end), end)

    def _kind_of(self, indices: Sequence[int], end: int) -> Kind:
        size = self.maps.size(end) or (1, 1)
        return self.branches.kind(indices, self.maps.channels(end), size)

    def kind_of_join(self, start: int, end: int) -> Kind:
        """Return the kind of what a join adds: branches that attend and others are parallel."""
        way = self.way(end)
        attending, others = set[int](), set[int]()
        for part in self.ways.branches(way, start) if way else ():
            behind = self.ways.ancestors(part, start)
            attends = self._kind_of(sorted(behind), end) == "msa"
            (attending if attends else others).update(behind)
        names = {self.operations[i].name for i in others - attending}
        works = any(multiplies(name) or is_fourier(name) for name in names)
        if attending and works:
            return "parallel"
        # What stands in the shortcut, such as a projection, is no part of the branch.
        branches = sorted(attending | others)
        return self._kind_of(branches, end) if branches else self.kind(start, end)

    def holds_many(self, index: int) -> bool:
        """Tell whether a value has more of an image than one vector, such as tokens."""
        return sum(size > 1 for size in self.operations[index].shape[1:]) > 1

    def unread_meeting(self, index: int) -> bool:
        """Tell whether a stream meets a branch there in another operation than a sum."""
        operation, start = self.operations[index], self.before(index)
        operands = [*dict.fromkeys(operation.operands())]
        if len(operands) < 2 or is_mixed(operation.name) or self.joins(index):
            return False
        streams = [value for value in operands if self.moved_from(value, start)]
        behind = [self.ways.ancestors(v, start) for v in operands if v not in streams]
        names = {self.operations[i].name for each in behind for i in each}
        return bool(streams) and any(multiplies(name) or is_fourier(name) for name in names)

    def additions(self, start: int, end: int) -> list[int]:
        """Return the additions of maps behind an operation and before another."""
        first, last = bisect_right(self.order, start), bisect_left(self.order, end)
        return [i for i in self.order[first:last] if self._adds(i) and self.maps.layout(i)]

    def stretches(self, cuts: Sequence[int]) -> list[tuple[int, int, float]]:
        """Return what lies between cuts, from the images to the end, and its share of the work."""
        ends = [0, *cuts, self.order[-1]]
        work = [sum(multiplies(op.name) for op in self.between(*pair)) for pair in pairwise(ends)]
        whole = max(sum(work), 1)
        return [(*pair, part / whole) for pair, part in zip(pairwise(ends), work, strict=True)]

    def largest_module(self, name: str, start: int, end: int) -> str:
        """Return the largest module around another that does nothing beyond two values."""
        beyond = {self.operations[i].module for i in self.order if not start < i <= end}
        while "." in name:
            outer = name.rpartition(".")[0]
            if any(inside(module, outer) for module in beyond):
                break
            name = outer
        return name
