"""Find where to cut a network: after the stem, joins and subsampling, or else after layers."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from torch import nn

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import (
    Way,
    Ways,
    combines_without_sum,
    kind_of_branch,
    pattern_of_module,
)
from vitscope.networks.finding.cut_points import How, Kind, Layout, Side
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value
from vitscope.networks.finding.positions import Tracer, layout_of


class Maps:
    def __init__(self, flow: Dataflow) -> None:
        self._flow, self._tracer = flow, Tracer(flow)
        self._known: dict[int, Layout | None] = {}

    def layout(self, index: int) -> Layout | None:
        if index not in self._known:
            positions = self._tracer.positions(Value(index))
            shape = self._flow.operations[index].shape
            self._known[index] = None if positions is None else layout_of(positions, shape)
        return self._known[index]

    def size(self, index: int) -> tuple[int, int] | None:
        layout, shape = self.layout(index), self._flow.operations[index].shape
        if layout is None:
            return None
        if layout.grid is not None:
            return layout.grid
        return shape[layout.order.index("h")], shape[layout.order.index("w")]

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
        self.maps = Maps(flow)
        self.ways = Ways(flow)
        self._found_ways: dict[int, Way | None] = {}
        self.order = flow.needed()
        # Leave out a stack that the next operation sums up: it is part of that sum.
        stacks = self.ways.summed_stacks
        self.dominators = [index for index in flow.dominators() if index not in stacks]

    def joins(self, index: int) -> bool:
        operation = self.operations[index]
        if self.ways.adds(index) or self._way_of_stream(index):
            return True
        # A shortcut with fewer channels than its branch is added to the first channels only.
        return operation.name in ("cat", "write") and any(
            self._adds_stream_to_channels(value.operation, operation.shape, self.before(index))
            for value in operation.operands()
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
        return same and any(self.moved_from(v, stream) for v in operation.operands())

    @cached_property
    def map_joins(self) -> list[int]:
        return [d for d in self.dominators if self.joins(d) and self.maps.layout(d)]

    @cached_property
    def norms(self) -> dict[int, int]:
        """Where the normalization after each join ends, in modules that normalize all sums."""
        # A normalization after only a module's last sum belongs to the network, not to a block.
        found = {d: self._norm_behind(d) for d in self.map_joins}
        without = {self.operations[d].module for d, norm in found.items() if norm is None}
        kept = {d: norm for d, norm in found.items() if self.operations[d].module not in without}
        return {d: norm for d, norm in kept.items() if norm is not None}

    def activation(self, end: int) -> int | None:
        """Return the activation that directly follows a sum in the same module, if any."""
        last = end
        for index in self.dominators[bisect_right(self.dominators, end) :]:
            following = self.operations[index]
            if following.operands()[:1] != [Value(last)]:
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

    def _norm_behind(self, end: int) -> int | None:
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
            divides = bool(names & ops.REDUCTIONS) and within[-1].name in ("mul", "div")
            normalizes |= bool(names & ops.NORMALIZATIONS) or divides
            if self.joins(index):
                break
            if normalizes and self.maps.size(index) == size:
                norm = index
        return norm

    def moved_from(self, value: Value, origin: int) -> bool:
        while value.operation > origin:
            operation = self.operations[value.operation]
            if operation.name not in ops.MOVES or len(operation.operands()) != 1:
                return False
            value = operation.operands()[0]
        return value.operation == origin

    def before(self, index: int) -> int:
        return self.dominators[bisect_left(self.dominators, index) - 1]

    def indices(self, start: int, end: int) -> list[int]:
        first, last = bisect_right(self.order, start), bisect_right(self.order, end)
        return self.order[first:last]

    def between(self, start: int, end: int) -> list[Operation]:
        return [self.operations[i] for i in self.indices(start, end)]

    def kind(self, start: int, end: int) -> Kind:
        return self._kind_of_operations(self.indices(start, end), end)

    def _kind_of_operations(self, indices: Sequence[int], end: int) -> Kind:
        size = self.maps.size(end) or (1, 1)
        return kind_of_branch(self.flow, indices, self.maps.channels(end), size)

    def kind_of_join(self, start: int, end: int) -> Kind:
        """Return the kind of a join's branches: `parallel` for attention beside other layers."""
        way = self.way(end)
        attending, others = set[int](), set[int]()
        for part in self.ways.branches(way, start) if way else ():
            behind = self.ways.ancestors(part, start)
            attends = self._kind_of_operations(sorted(behind), end) == "msa"
            (attending if attends else others).update(behind)
        names = {self.operations[i].name for i in others - attending}
        works = any(ops.multiplies(name) or ops.is_fourier(name) for name in names)
        if attending and works:
            return "parallel"
        # Leave out the operations of the shortcut, such as a projection.
        branches = sorted(attending | others)
        return self._kind_of_operations(branches, end) if branches else self.kind(start, end)

    def holds_many_vectors(self, index: int) -> bool:
        """Tell whether a value has more than one vector per image, such as tokens."""
        return sum(size > 1 for size in self.operations[index].shape[1:]) > 1

    def meets_branch_without_sum(self, index: int) -> bool:
        """Tell whether a stream meets a branch in an operation that is not a sum."""
        operation, start = self.operations[index], self.before(index)
        operands = [*dict.fromkeys(operation.operands())]
        if len(operands) < 2 or combines_without_sum(operation.name) or self.joins(index):
            return False
        streams = [value for value in operands if self.moved_from(value, start)]
        behind = [self.ways.ancestors(v, start) for v in operands if v not in streams]
        names = {self.operations[i].name for each in behind for i in each}
        return bool(streams) and any(ops.multiplies(name) or ops.is_fourier(name) for name in names)

    def additions(self, start: int, end: int) -> list[int]:
        first, last = bisect_right(self.order, start), bisect_left(self.order, end)
        named = [i for i in self.order[first:last] if self.operations[i].name in ops.ADDITIONS]
        of_several = [i for i in named if len(set(self.operations[i].operands())) > 1]
        return [*filter(self.maps.layout, of_several)]

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


# A stretch between cuts with a larger share of the network's layers than this is cut at layers.
LARGE_SHARE = 0.2


@dataclass(frozen=True, order=True)
class Cut:
    """An operation after which the network is cut, and how the cut was found.

    `end` is the addition that joins a branch there, or else `index` itself. `block` is the module
    that ends there. `start` is the operation whose value enters this module, and `begin` the
    operation whose value enters its branch.
    """

    index: int
    how: How
    kind: Kind
    end: int
    block: str
    start: int
    begin: int


def layer_kind(recorded: RecordedPass, start: int, end: int) -> Kind:
    if recorded.operations[end].name in ops.POOLINGS:
        return "pool"
    kind = recorded.kind(start, end)
    # Without a shortcut, a convolution makes a layer `conv` even if its kernel is 1x1.
    convolves = any(op.name in ops.CONVOLUTIONS for op in recorded.between(start, end))
    return "conv" if kind == "mlp" and convolves else kind


class CutFinder:
    def __init__(self, recorded: RecordedPass, norms: Side = "after") -> None:
        self._pass = recorded
        self._norms = recorded.norms if norms == "after" else {}
        self._maps = recorded.maps
        self._operations = recorded.operations
        self._dominators = recorded.dominators

    def _cuts_at_blocks(self) -> list[Cut]:
        blocks = self._block_cuts()
        if not blocks:
            return []
        stem = self._end_of_stem(blocks[0])
        cuts = [Cut(stem, "stem", "stem", stem, "", 0, 0)]
        if stem == 0:
            # The first block takes the images themselves, so it is the stem.
            cuts = [replace(blocks.pop(0), how="stem", kind="stem")]
        for block in blocks:
            # Cut also at a subsampling before a block, or inside it before its branch begins.
            for entry in (block.start, block.begin):
                last = cuts[-1].index
                if entry > last and self._maps.size(entry) not in (None, self._maps.size(last)):
                    kind: Kind = "msa" if self._pass.kind(last, entry) == "msa" else "pool"
                    inner = block.block, block.start, last
                    cuts.append(Cut(entry, "subsampling", kind, entry, *inner))
            cuts.append(block)
        return cuts

    def _block_cuts(self) -> list[Cut]:
        joins = self._pass.map_joins
        holding = {self._operations[d].module for d in joins}
        blocks = [self._block_cut(d, self._operations[d].module) for d in joins]
        blocks += [self._block_cut(*plain) for plain in self._blocks_without_joins(holding)]
        return sorted(blocks)

    def _blocks_without_joins(self, holding: set[str]) -> list[tuple[int, str]]:
        """Return ends and names of blocks without a shortcut, named like blocks that have one."""
        patterns = {pattern_of_module(block) for block in holding if block}
        ran = [self._operations[index] for index in self._pass.order]
        working = [operation.module for operation in ran if ops.multiplies(operation.name)]
        return [
            (passage.value.operation, passage.module)
            for passage in self._pass.flow.passages
            if passage.at == "output"
            and pattern_of_module(passage.module) in patterns
            and passage.value.operation in self._dominators
            and self._maps.layout(passage.value.operation)
            and not any(ops.inside(other, passage.module) for other in holding)
            and sum(ops.inside(module, passage.module) for module in working) > 1
        ]

    def _block_cut(self, end: int, block: str) -> Cut:
        """Return the cut where a block ends: after its sum.

        If an activation or a normalization belongs to the sum, the cut lies after it.
        """
        index = self._pass.activation(end) or self._norms.get(end, end)
        start = self._entry_of_module(end, block)
        # A branch begins where its shortcut begins or, without a shortcut, where the block begins.
        how: How = "join" if self._pass.joins(end) else "block"
        begin = self._pass.before(end) if how == "join" else start
        kind = self._pass.kind_of_join(begin, end) if how == "join" else self._pass.kind(begin, end)
        return Cut(index, how, kind, end, block, start, begin)

    def _entry_of_module(self, end: int, module: str) -> int:
        if not module:
            return self._pass.before(end)
        position = bisect_left(self._dominators, end) - 1
        while position > 0 and ops.inside(
            self._operations[self._dominators[position]].module, module
        ):
            position -= 1
        return self._dominators[position]

    def _end_of_stem(self, first: Cut) -> int:
        """Return where the stem ends: before the first block.

        If the stage of this block subsamples first, the stem ends before the stage.
        """
        outer = first.block
        while "." in outer:
            outer = outer.rpartition(".")[0]
            entry = self._entry_of_module(first.end, outer)
            if not any(ops.multiplies(op.name) for op in self._pass.between(0, entry)):
                break
            if self._maps.size(entry) not in (None, self._maps.size(first.start)):
                return entry
        return first.start

    def find_cuts(self) -> list[Cut]:
        """Return all cuts in order: at blocks, and at layers in large stretches without blocks."""
        cuts = self._cuts_at_blocks()
        if not cuts:
            plain = self._layer_cuts(0, self._pass.order[-1])
            return [replace(plain[0], kind="stem", how="stem"), *plain[1:]] if plain else []
        within = [(cut.start, cut.index) for cut in cuts if cut.how in ("join", "block")]
        added: list[Cut] = []
        for start, end, share in self._pass.stretches([cut.index for cut in cuts])[1:]:
            if share > LARGE_SHARE:
                added += [
                    cut
                    for cut in self._layer_cuts(start, end)
                    if not any(first < cut.index <= last for first, last in within)
                ]
        return sorted([*cuts, *added])

    def _layer_cuts(self, start: int, end: int) -> list[Cut]:
        """Return a cut after each pooling, and after the end of each convolution.

        A convolution ends with the activation or concatenation that follows it.
        """
        cuts: list[Cut] = []
        last = start
        for index in self._dominators:
            if start < index < end and self._ends_layer(last, index):
                kind, module = layer_kind(self._pass, last, index), self._operations[index].module
                layer = self._pass.largest_module(module, last, index)
                cuts.append(Cut(index, "layer", kind, index, layer, last, last))
                last = index
        return cuts

    def _ends_layer(self, last: int, index: int) -> bool:
        operation, size = self._operations[index], self._maps.size(index)
        if size is None or (size == (1, 1) and self._maps.size(last) != (1, 1)):
            return False
        convolved = any(op.name in ops.CONVOLUTIONS for op in self._pass.between(last, index))
        if operation.name == "cat":
            return convolved
        return operation.name in ops.POOLINGS or (operation.name in ops.ACTIVATIONS and convolved)
