"""Read a recorded pass: where paths meet, where branches join, and which results are maps."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from torch import nn

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.attending_branches import Attending
from vitscope.networks.finding.branches import kind_without_attention, passes_state
from vitscope.networks.finding.cut_points import Kind, Layout
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value
from vitscope.networks.finding.positions import (
    PositionTracer,
    has_places,
    layout_of_positions,
    sums_over_positions,
)
from vitscope.networks.finding.ways import Way, Ways, combines_without_sum


class RecordedMaps:
    def __init__(self, flow: Dataflow) -> None:
        self._flow, self._tracer = flow, PositionTracer(flow)
        self._known: dict[int, Layout | None] = {}
        self.attending = Attending(flow, self._tracer)

    def layout(self, index: int) -> Layout | None:
        if index not in self._known:
            positions = self._tracer.positions(Value(index))
            shape = self._flow.operations[index].shape
            self._known[index] = (
                None if positions is None else layout_of_positions(positions, shape)
            )
        return self._known[index]

    def size(self, index: int) -> tuple[int, int] | None:
        layout, shape = self.layout(index), self._flow.operations[index].shape
        if layout is None:
            return None
        if layout.grid is not None:
            return layout.grid
        return shape[layout.order.index("h")], shape[layout.order.index("w")]

    def has_places(self, index: int) -> bool:
        """Tell whether places of values are known, as where several values share a place."""
        return has_places(self._tracer.positions(Value(index)))

    def mixes(self, index: int) -> bool:
        """Tell whether an operation sums over positions by weights that no image changes."""
        return sums_over_positions(self._tracer, self._flow.operations[index])

    def channel(self, index: int) -> int | None:
        layout = self.layout(index)
        return None if layout is None else layout.order.index("c")

    def channels(self, index: int) -> int:
        channel = self.channel(index)
        return 0 if channel is None else self._flow.operations[index].shape[channel]


class RecordedPass:
    """Holds a recorded pass: its operations, where all paths meet, and which results are maps."""

    def __init__(self, model: nn.Module, flow: Dataflow) -> None:
        self.flow = flow
        self.operations = flow.operations
        self.modules = [name for name, _ in model.named_modules() if name]
        self.maps = RecordedMaps(flow)
        self.ways = Ways(flow)
        self._found_ways: dict[int, Way | None] = {}
        self.order = flow.needed()
        # Leave out a stack that a later operation sums up: it is part of that sum.
        stacks = self.ways.summed_stacks
        self.dominators = [index for index in flow.dominators() if index not in stacks]
        # What reads the stream before the last unit, and is in no branch.
        self._readers = set[int]()
        self.dominators = self._dominators_beside_readers()
        self._found_ways.clear()

    def _dominators_beside_readers(self) -> list[int]:
        """Return the dominators, and those of the last unit if only a head reads around it.

        A head may read the stream at several depths, as the exits of each block or DINOv2's linear
        head on the last four. Such paths hold no sum of stream and branch, no layer that works on
        maps, as a second tower has, and end in no map.
        """
        # Sums of tokens whose places are lost count too, to be told of.
        every = self._sums(0, self.order[-1])
        sums = [i for i in every if self.holds_many_vectors(i) or self.maps.layout(i)]
        last = next((i for i in reversed(sums) if self.ways.adds_branch(i, 0)), None)
        if last is None:
            return self.dominators
        for index in sums:
            if index > last and self._adds_to_unit(index, last):
                last = index
        if last in self.dominators:
            return self.dominators
        end = self._end_of_unit(last)
        before = self.ways.ancestors(Value(end), 0)
        beside = [index for index in self.order if index not in before and index]
        later = [d for d in self.dominators if d > last and self.holds_many_vectors(d)]
        maps = any(self.maps.layout(d) or self.joins(d) for d in later)
        if maps or any(self._adds_or_works_on_map(index) for index in beside):
            return self.dominators
        self._readers = {index for index in beside if index < end}
        of_last = replace(self.flow, result=Value(end)).dominators()
        stacks = self.ways.summed_stacks
        return sorted({*self.dominators, *of_last} - stacks)

    def _adds_to_unit(self, index: int, last: int) -> bool:
        """Tell whether a sum adds another branch to a sum, or what works on it to a form of it."""
        operands = self.operations[index].operands
        if any(self.moved_from(value, last) for value in operands):
            return True
        behind = [self.ways.ancestors(value, last) for value in operands]
        works = any(ops.multiplies(self.operations[i].name) for each in behind for i in each)
        return works and all(each.intersection(self.flow.users.get(last, ())) for each in behind)

    def _end_of_unit(self, last: int) -> int:
        """Return the last map through which all goes that reads a sum, as the norm behind it."""
        maps = filter(self.maps.layout, filter(self.holds_many_vectors, self._read_behind(last)))
        passed = (i for i in maps if self.order[-1] not in self._read_behind(last, without=i))
        return max(passed, default=last)

    def _read_behind(self, index: int, without: int | None = None) -> set[int]:
        """Return what depends on a value, and not by way of the operation `without` alone."""
        found, missing = set[int](), [index]
        while missing:
            new = {*self.flow.users.get(missing.pop(), ())} - found - {without}
            found |= new
            missing += new
        return found

    def _adds_or_works_on_map(self, index: int) -> bool:
        # A linear layer may take the tokens of all images as rows.
        rows = self.operations[index].shape[0] > self.operations[0].shape[0]
        if not (rows or self.holds_many_vectors(index)) or not self.maps.layout(index):
            return False
        return ops.multiplies(self.operations[index].name) or self.ways.adds_branch(index, 0)

    def joins(self, index: int) -> bool:
        operation = self.operations[index]
        if self.ways.centres(index):
            return False
        if self.ways.adds(index) or self._way_of_stream(index):
            return True
        # A shortcut with fewer channels than its branch is added to the first channels only.
        return operation.name in ("cat", "write") and any(
            self._adds_stream_to_channels(value.operation, operation.shape, self.before(index))
            for value in operation.operands
        )

    def _way_of_stream(self, index: int) -> Way | None:
        if index not in self._found_ways:
            operation, appends = self.operations[index], False
            if operation.name == "cat":
                # Appending channels to those of the stream adds nothing to the stream.
                along = [*operation.args[1:2], operation.kwargs.get("dim", 0)][0]
                appends = along % len(operation.shape) == self.maps.channel(index)
            way = None if appends else self.ways.way(self.before(index), index)
            self._found_ways[index] = way
        return self._found_ways[index]

    def way(self, index: int) -> Way | None:
        """Return the way of the stream to a join; None if either side could be the stream."""
        way = self._way_of_stream(index)
        if way is None and self.ways.adds(index):
            shortcut = self.ways.shortcut(index, self.before(index))
            if shortcut is None or self.maps.layout(shortcut.operation) is None:
                return None
            return self.ways.way(shortcut.operation, index)
        return way

    def _adds_stream_to_channels(self, index: int, shape: tuple[int, ...], stream: int) -> bool:
        """Tell whether an operation adds `stream` to some channels of a map of this `shape`."""
        operation, channel = self.operations[index], self.maps.channel(index)
        if index <= stream or operation.name not in ops.ADDITIONS or channel is None:
            return False
        others = [d for d in range(len(shape)) if d != channel]
        same = len(operation.shape) == len(shape) and all(
            operation.shape[d] == shape[d] for d in others
        )
        return same and any(self.moved_from(v, stream) for v in operation.operands)

    @cached_property
    def map_joins(self) -> list[int]:
        return [d for d in self.dominators if self.joins(d) and self.maps.layout(d)]

    @cached_property
    def norms(self) -> dict[int, int]:
        """Where the normalization after each join ends, in modules that normalize all sums."""
        # A normalization after only a module's last sum belongs to the network, not to a block.
        found = {d: self._norm_after(d) for d in self.map_joins}
        without = {self.operations[d].module for d, norm in found.items() if norm is None}
        kept = {d: norm for d, norm in found.items() if self.operations[d].module not in without}
        return {d: norm for d, norm in kept.items() if norm is not None}

    def activation(self, end: int) -> int | None:
        """Return the activation that directly follows a sum in the same module, if any."""
        last = end
        for index in self.dominators[bisect_right(self.dominators, end) :]:
            following = self.operations[index]
            if following.operands[:1] != [Value(last)]:
                return None
            if not ops.inside(following.module, self.operations[end].module):
                return None
            if following.name in ops.ACTIVATIONS:
                return index
            if following.name not in ops.COPIES:
                return None
            # A sum converted to another type still counts as the sum.
            last = index
        return None

    def _norm_after(self, end: int) -> int | None:
        """Return where the normalization after a sum ends, within the block, with scale and bias.

        Return None if no normalization follows.
        """
        block, size = self.operations[end].module, self.maps.size(end)
        normalizes, norm = False, None
        for before, index in pairwise(self.dominators[bisect_left(self.dominators, end) :]):
            within = self.between(before, index)
            if not all(
                ops.inside(op.module, block) and op.name in ops.PARTS_OF_NORMS for op in within
            ):
                break
            if norm is not None:
                last = self.operations[norm]
                if within[-1].module != last.module or within[-1].name not in ("mul", "add"):
                    break
            names = {op.name for op in within}
            measured = bool(names & (ops.REDUCTIONS | ops.SPREADS))
            divides = measured and within[-1].name in ("mul", "div")
            normalizes |= bool(names & ops.NORMALIZATIONS) or divides
            if self.joins(index):
                break
            if normalizes and self.maps.size(index) == size:
                norm = index
        return norm

    def moved_from(self, value: Value, origin: int) -> bool:
        while value.operation > origin:
            operation = self.operations[value.operation]
            if operation.name not in ops.MOVES or len(operation.operands) != 1:
                return False
            value = operation.operands[0]
        return value.operation == origin

    def before(self, index: int) -> int:
        return self.dominators[bisect_left(self.dominators, index) - 1]

    def indices(self, start: int, end: int) -> list[int]:
        first, last = bisect_right(self.order, start), bisect_right(self.order, end)
        return [index for index in self.order[first:last] if index not in self._readers]

    def between(self, start: int, end: int) -> list[Operation]:
        return [self.operations[i] for i in self.indices(start, end)]

    def kind(self, start: int, end: int) -> Kind:
        return self._kind_of_operations(self.indices(start, end), start, end)

    def _kind_of_operations(self, indices: Sequence[int], start: int, end: int) -> Kind:
        kind = self._kind_of_branch(indices, end)
        # What sums over positions and leaves fewer of them, such as patch merging, subsamples.
        same_size = self.maps.size(start) in (None, self.maps.size(end) or (1, 1))
        return "mixing" if kind == "mlp" and same_size and self._mixes(indices) else kind

    def _kind_of_branch(self, indices: Sequence[int], end: int) -> Kind:
        size = self.maps.size(end) or (1, 1)
        if self.maps.attending.by_softmax(indices):
            return "msa"
        if passes_state(self.flow, indices, size):
            return "ssm"
        if self.maps.attending.by_products(indices):
            return "msa"
        return kind_without_attention(self.flow, indices, self.maps.channels(end), size)

    def _mixes(self, indices: Sequence[int]) -> bool:
        return any(map(self.maps.mixes, indices))

    def kind_of_join(self, start: int, end: int) -> Kind:
        """Return the kind of a join's branches: `parallel` for attention beside other layers."""
        way = self.way(end)
        attending, others = set[int](), set[int]()
        for part in self.ways.branches(way, start) if way else ():
            behind = self.ways.ancestors(part, start)
            attends = self._kind_of_branch(sorted(behind), end) == "msa"
            (attending if attends else others).update(behind)
        names = {self.operations[i].name for i in others - attending}
        works = any(ops.multiplies(name) or ops.is_fourier(name) for name in names)
        if attending and works:
            return "parallel"
        # Leave out the shortcut, such as a projection; a sum may multiply its branch too.
        of_way = way.sums if way else ()
        sums = {each.operation for each in of_way if self.ways.addends(each.operation).computed}
        branches = sorted(attending | others | sums)
        return self._kind_of_operations(branches, start, end) if branches else self.kind(start, end)

    def holds_many_vectors(self, index: int) -> bool:
        """Tell whether a value has more than one vector per image, such as tokens."""
        return sum(size > 1 for size in self.operations[index].shape[1:]) > 1

    def meets_branch_without_sum(self, index: int) -> bool:
        """Tell whether a stream meets a branch in an operation that is not a sum."""
        operation, start = self.operations[index], self.before(index)
        operands = [*dict.fromkeys(operation.operands)]
        if len(operands) < 2 or combines_without_sum(operation.name) or self.joins(index):
            return False
        streams = [value for value in operands if self.moved_from(value, start)]
        behind = [self.ways.ancestors(v, start) for v in operands if v not in streams]
        names = {self.operations[i].name for each in behind for i in each}
        return bool(streams) and any(ops.multiplies(name) or ops.is_fourier(name) for name in names)

    def additions(self, start: int, end: int) -> list[int]:
        return [*filter(self.maps.layout, self._sums(start, end))]

    def _sums(self, start: int, end: int) -> list[int]:
        first, last = bisect_right(self.order, start), bisect_left(self.order, end)
        return [i for i in self.order[first:last] if self.ways.adds(i)]

    def units_outside(self, end: int, joined: bool) -> list[int]:
        """Return the sums of stream and branch around which paths lead, between two dominators.

        `end` is the second dominator. If branches join the stream there, as `joined` says, sums
        within them are no units; sums on the way of the stream are, if a branch works on them.
        """
        start = self.before(end)
        # Sums of tokens whose places are lost count too, as of the best ones beside the others.
        inner = [
            i for i in self._sums(start, end) if self.maps.layout(i) or self.holds_many_vectors(i)
        ]
        if joined:
            way = self.way(end)
            if way is None or len(way.sums) < 2:
                return []
            branches = self.ways.branches(way, start)
            behind = {i for value in branches for i in self.ways.ancestors(value, start)}
            earlier = {each.operation for each in way.sums[:-1]}
            inner = [index for index in inner if index in earlier & behind]
        return [index for index in inner if self.ways.adds_branch(index, start)]

    def stretches(self, cuts: Sequence[int]) -> list[tuple[int, int, float]]:
        """Return the start and end of each stretch between cuts, and its share of the layers.

        The first stretch starts at the images, and the last ends at the result.
        """
        ends = [0, *cuts, self.order[-1]]
        work = [
            sum(ops.multiplies(op.name) for op in self.between(*pair)) for pair in pairwise(ends)
        ]
        whole = max(sum(work), 1)
        return [(*pair, part / whole) for pair, part in zip(pairwise(ends), work, strict=True)]

    def largest_module(self, name: str, start: int, end: int) -> str:
        """Return the largest module around `name` that does nothing outside `start` to `end`."""
        beyond = {self.operations[i].module for i in self.order if not start < i <= end}
        while "." in name:
            outer = name.rpartition(".")[0]
            if any(ops.inside(module, outer) for module in beyond):
                break
            name = outer
        return name
