"""Find the cut points of any network from what it computes.

Where every path from the images to the result meets in an addition of two values that both depend on
the images, a branch joins the residual stream, which is whole again: a join. What enters the first
block is the stem; where the map that enters a block has another size than what left the last, it was
subsampled on the way. A stretch without joins is cut where the activation of a convolution, a
concatenation or a pooling ends. Or else a study names the points.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.networks.branches import Branches, pattern
from vitscope.networks.compiler import without_compiler
from vitscope.networks.cut_points import CutPoint, Join, Kind, Layout, Recorded
from vitscope.networks.dataflow import Dataflow, Operation, Value, record
from vitscope.networks.maps import Maps
from vitscope.networks.operations import (
    ACTIVATIONS,
    ADDITIONS,
    CONVOLUTIONS,
    MOVES,
    NORMALIZATIONS,
    POOLINGS,
    inside,
    multiplies,
)

# A stretch between two cut points with more of the network than this is cut at more than joins, and
# if it holds so many additions all the same, then the network has several streams there.
LARGE_SHARE = 0.2
TOO_LARGE_SHARE = 0.4
ADDITIONS_OF_STREAMS = 10


How = Literal["stem", "join", "block", "subsampling", "layer", "named"]


class Cut(NamedTuple):
    """An operation behind which the network is cut, and how that was found.

    `end` is the addition that joins a branch there, or the same operation; `block` the module that
    ends there; `start` the operation whose value enters it, and `begin` that which the branch gets.
    """

    index: int
    how: How
    kind: Kind
    end: int
    block: str
    start: int
    begin: int


@dataclass(frozen=True)
class Found:
    """The cut points of a network, and what of it they do not cover, in words."""

    points: list[CutPoint]
    uncovered: list[str]


def find_cut_points(model: nn.Module, images: Tensor) -> Found:
    """Return the cut points of a network that is given `images`, two or more."""
    return _Finder(model, _recorded(model, images)).find()


def named_cut_points(
    model: nn.Module, images: Tensor, points: Sequence[Mapping[str, Any]]
) -> Found:
    """Return the cut points that a study names: patterns of module names, and where to read."""
    return _Finder(model, _recorded(model, images)).named(points)


def _recorded(model: nn.Module, images: Tensor) -> Dataflow:
    # The first operation that a mode sees imports the compiler otherwise.
    with without_compiler():
        return record(model, images)


class _Finder:
    def __init__(self, model: nn.Module, flow: Dataflow) -> None:
        self._modules = [name for name, _ in model.named_modules() if name]
        self._flow = flow
        self._operations = flow.operations
        self._maps = Maps(flow)
        self._branches = Branches(flow)
        self._order = flow.needed()
        self._dominators = flow.dominators()

    def find(self) -> Found:
        """Return the cut points that are found, in order."""
        cuts = self._with_plain_cuts(self._cuts())
        self._refuse_streams(cuts)
        return Found(self._points(cuts), self._uncovered(cuts))

    # Where there are joins.

    def _cuts(self) -> list[Cut]:
        """Return the cuts of all blocks, and before them the stem and every subsampling."""
        blocks = self._blocks()
        if not blocks:
            return []
        stem = self._stem(blocks[0])
        cuts = [Cut(stem, "stem", "stem", stem, "", 0, 0)]
        for block in blocks:
            # What subsamples stands before a block, or in it before its branch begins.
            for entry in (block.start, block.begin):
                last = cuts[-1].index
                if entry > last and self._maps.size(entry) not in (None, self._maps.size(last)):
                    kind = "msa" if self._kind(last, entry) == "msa" else "pool"
                    cuts.append(
                        Cut(entry, "subsampling", kind, entry, block.block, block.start, last)
                    )
            cuts.append(block)
        return cuts

    def _blocks(self) -> list[Cut]:
        joins = [d for d in self._dominators if self._joins(d) and self._maps.layout(d)]
        holding = {self._operations[d].module for d in joins}
        blocks = [self._block(d, self._operations[d].module) for d in joins]
        blocks += [self._block(*plain) for plain in self._blocks_without_joins(holding)]
        return sorted(blocks)

    def _joins(self, index: int) -> bool:
        """Tell whether an operation adds values that both depend on the images."""
        operation = self._operations[index]
        if operation.name in ADDITIONS:
            return len(set(operation.operands())) > 1
        # Where a shortcut has fewer channels than its branch, it is added to the first of them.
        return operation.name in ("cat", "write") and any(
            self._adds_stream(value.operation, operation.shape, self._before(index))
            for value in operation.operands()
        )

    def _adds_stream(self, index: int, shape: tuple[int, ...], stream: int) -> bool:
        """Tell whether an operation adds to some channels of a map of a shape what is a stream."""
        operation, channel = self._operations[index], self._maps.channel(index)
        if index <= stream or operation.name not in ADDITIONS or channel is None:
            return False
        others = [d for d in range(len(shape)) if d != channel]
        same = len(operation.shape) == len(shape) and all(
            operation.shape[d] == shape[d] for d in others
        )
        return same and any(self._moved_from(v, stream) for v in operation.operands())

    def _moved_from(self, value: Value, origin: int) -> bool:
        """Tell whether a value is another, or that moved."""
        while value.operation > origin:
            operation = self._operations[value.operation]
            if operation.name not in MOVES or len(operation.operands()) != 1:
                return False
            value = operation.operands()[0]
        return value.operation == origin

    def _blocks_without_joins(self, holding: set[str]) -> list[tuple[int, str]]:
        """Return where blocks end that have no shortcut: those named as others that have one."""
        patterns = {pattern(block) for block in holding if block}
        return [
            (passage.value.operation, passage.module)
            for passage in self._flow.passages
            if passage.at == "output"
            and pattern(passage.module) in patterns
            and passage.value.operation in self._dominators
            and self._maps.layout(passage.value.operation)
            and not any(inside(other, passage.module) for other in holding)
            and self._matrices(passage.module) > 1
        ]

    def _matrices(self, module: str) -> int:
        ran = (self._operations[i] for i in self._order)
        return sum(inside(op.module, module) and multiplies(op.name) for op in ran)

    def _block(self, end: int, block: str) -> Cut:
        """Return the cut where a block ends: behind the activation or norm of its sum, if any."""
        index = end
        after = bisect_right(self._dominators, end)
        if after < len(self._dominators):
            following = self._operations[self._dominators[after]]
            within = inside(following.module, block)
            ends = following.name in ACTIVATIONS or (block and following.name in NORMALIZATIONS)
            if within and ends and following.operands()[:1] == [Value(end)]:
                index = self._dominators[after]
        start = self._entry(end, block)
        # A join has a shortcut, which starts where its branch does; a block without one is all branch.
        how: How = "join" if self._joins(end) else "block"
        begin = self._before(end) if how == "join" else start
        return Cut(index, how, self._kind(begin, end), end, block, start, begin)

    def _before(self, index: int) -> int:
        """Return the last dominator before an operation."""
        return self._dominators[bisect_left(self._dominators, index) - 1]

    def _entry(self, end: int, module: str) -> int:
        """Return the operation whose value enters the module in which an operation is."""
        if not module:
            return self._before(end)
        position = bisect_left(self._dominators, end) - 1
        while position > 0 and inside(self._operations[self._dominators[position]].module, module):
            position -= 1
        return self._dominators[position]

    def _stem(self, first: Cut) -> int:
        """Return the operation whose value enters the first block.

        Or what holds it, if the map is subsampled behind that and the value is no image.
        """
        outer = first.block
        while "." in outer:
            outer = outer.rpartition(".")[0]
            entry = self._entry(first.end, outer)
            if not any(multiplies(op.name) for op in self._between(0, entry)):
                break
            if self._maps.size(entry) not in (None, self._maps.size(first.start)):
                return entry
        return first.start

    def _between(self, start: int, end: int) -> list[Operation]:
        """Return the operations behind one, up to another."""
        first, last = bisect_right(self._order, start), bisect_right(self._order, end)
        return [self._operations[i] for i in self._order[first:last]]

    def _kind(self, start: int, end: int) -> Kind:
        return self._branches.kind(self._between(start, end), self._maps.channels(end))

    # Where there are none.

    def _with_plain_cuts(self, cuts: list[Cut]) -> list[Cut]:
        """Add cuts where there are no joins, or in large stretches between them."""
        if not cuts:
            plain = self._plain_cuts(0, self._order[-1])
            return [plain[0]._replace(kind="stem", how="stem"), *plain[1:]] if plain else []
        within = [(cut.start, cut.index) for cut in cuts if cut.how in ("join", "block")]
        added: list[Cut] = []
        for start, end, share in self._stretches(cuts)[1:]:
            if share > LARGE_SHARE:
                added += [
                    cut
                    for cut in self._plain_cuts(start, end)
                    if not any(first < cut.index <= last for first, last in within)
                ]
        return sorted([*cuts, *added])

    def _stretches(self, cuts: Sequence[Cut]) -> list[tuple[int, int, float]]:
        """Return what lies between cuts, from the images to the end, and its share of the work."""
        ends = [0, *(cut.index for cut in cuts), self._order[-1]]
        work = [sum(multiplies(op.name) for op in self._between(*pair)) for pair in pairwise(ends)]
        whole = max(sum(work), 1)
        return [(*pair, part / whole) for pair, part in zip(pairwise(ends), work, strict=True)]

    def _plain_cuts(self, start: int, end: int) -> list[Cut]:
        """Return where the activation of a convolution, a concatenation or a pooling ends."""
        cuts: list[Cut] = []
        last = start
        for index in self._dominators:
            if start < index < end and self._ends_layer(last, index):
                cut = Cut(index, "layer", self._layer_kind(last, index), index, "", last, last)
                cuts.append(cut._replace(block=self._layer(cut)))
                last = index
        return cuts

    def _layer_kind(self, start: int, end: int) -> Kind:
        if self._operations[end].name in POOLINGS:
            return "pool"
        kind = self._kind(start, end)
        # Without a shortcut, a convolution is one however wide it is.
        convolves = any(op.name in CONVOLUTIONS for op in self._between(start, end))
        return "conv" if kind == "mlp" and convolves else kind

    def _ends_layer(self, last: int, index: int) -> bool:
        operation, size = self._operations[index], self._maps.size(index)
        if size is None or (size == (1, 1) and self._maps.size(last) != (1, 1)):
            return False
        convolved = any(op.name in CONVOLUTIONS for op in self._between(last, index))
        if operation.name == "cat":
            return convolved
        return operation.name in POOLINGS or (operation.name in ACTIVATIONS and convolved)

    def _layer(self, cut: Cut) -> str:
        """Return the largest module around an operation that does nothing beyond its stretch."""
        name = self._operations[cut.index].module
        outside = {
            self._operations[i].module
            for i in self._order
            if not cut.start < i <= cut.index
        }
        while "." in name:
            outer = name.rpartition(".")[0]
            if any(inside(other, outer) for other in outside):
                break
            name = outer
        return name

    # What is not covered.

    def _additions(self, start: int, end: int) -> list[int]:
        """Return the additions of maps behind an operation and before another."""
        first, last = bisect_right(self._order, start), bisect_left(self._order, end)
        return [
            i
            for i in self._order[first:last]
            if self._operations[i].name in ADDITIONS
            and len(set(self._operations[i].operands())) > 1
            and self._maps.layout(i)
        ]

    def _refuse_streams(self, cuts: Sequence[Cut]) -> None:
        """Refuse a network of which only part was found."""
        if not cuts:
            raise VitscopeError(
                "no cut point was found in the network: its maps, if it has any, meet nowhere; "
                "name the points to read in the model's entry, as points."
            )
        names = ["the images", *(point.name for point in self._points(cuts)), "the result"]
        for position, (start, end, share) in enumerate(self._stretches(cuts)):
            additions = len(self._additions(start, end))
            if share > TOO_LARGE_SHARE and additions > ADDITIONS_OF_STREAMS:
                raise VitscopeError(
                    f"only part of the network was found: {len(cuts)} cut points, and between "
                    f"{quoted(names[position])} and {quoted(names[position + 1])} lie "
                    f"{share:.0%} of its layers, with {additions} additions to several streams at "
                    f"once; name the points to read in the model's entry, as points."
                )

    def _uncovered(self, cuts: Sequence[Cut]) -> list[str]:
        """Say which additions of the network no cut point shows."""
        joined = {cut.end for cut in cuts}
        lost = [d for d in self._dominators if self._joins(d) and d not in joined]
        inner = [i for i in self._additions(0, self._order[-1]) if i not in {*joined, *lost}]
        said = []
        if inner:
            said.append(f"{len(inner)} additions within branches")
        if lost:
            said.append(f"{len(lost)} additions of values that are no maps")
        return said

    # Where a study says it.

    def named(self, points: Sequence[Mapping[str, Any]]) -> Found:
        """Return the cut points that a study names, in the order in which the network has them."""
        entries = [self._entry_of(name, point) for point in points for name in self._named(point)]
        cuts: list[Cut] = []
        last = 0
        for index, name, at in sorted(entries):
            if cuts and index == last:
                raise VitscopeError(
                    f"points: the {at} of {quoted(name)} is the same value as "
                    f"{quoted(cuts[-1].block)}, which is named too: leave one out."
                )
            kind: Kind = "stem" if not cuts else self._layer_kind(last, index)
            called = name if at == "output" else f"{name}.input"
            cuts.append(Cut(index, "named", kind, self._end_of(index), called, last, last))
            last = index
        return Found(self._points(cuts), [])

    def _named(self, point: Mapping[str, Any]) -> list[str]:
        """Return the modules that a pattern fits: `*` is any part of a name, `**` any parts."""
        fitting = re.escape(point["module"]).replace(r"\*\*", ".*").replace(r"\*", "[^.]*")
        names = [name for name in self._modules if re.fullmatch(fitting, name)]
        if not names:
            raise VitscopeError(
                f"points: the network has no module '{point['module']}'."
                f"{nearest(point['module'], self._modules)}"
            )
        return names

    def _entry_of(self, name: str, point: Mapping[str, Any]) -> tuple[int, str, str]:
        """Return the operation whose value a module takes or returns."""
        at, calls = point["at"], self._flow.calls[name]
        if calls != 1:
            raise VitscopeError(
                f"points: {quoted(name)} runs {calls} times in a pass, allowed: modules that run "
                f"once."
            )
        indices = [
            passage.value.operation
            for passage in self._flow.passages
            if (passage.module, passage.at) == (name, at) and passage.value.output == 0
        ]
        if not indices or self._maps.layout(indices[0]) is None:
            raise VitscopeError(
                f"points: the {at} of {quoted(name)} is no feature map: {self._shape_of(indices)}."
            )
        if indices[0] not in self._dominators and not point.get("inside", False):
            raise VitscopeError(
                f"points: the {at} of {quoted(name)} is not the whole stream: the result also "
                f"depends on values that go around it. Say `inside: true` with the point to read "
                f"it all the same."
            )
        return indices[0], name, at

    def _shape_of(self, indices: Sequence[int]) -> str:
        if not indices:
            return "it does not depend on the images"
        shape = self._operations[indices[0]].shape
        return f"of {self._flow.images} images it has the shape {shape}"

    def _end_of(self, index: int) -> int:
        """Return the join whose activation an operation is, or the operation itself."""
        operation = self._operations[index]
        before = [value.operation for value in operation.operands()]
        closes = operation.name in ACTIVATIONS | NORMALIZATIONS
        activated = closes and before and self._joins(before[0])
        return before[0] if activated and before[0] in self._dominators else index

    # What they are called, and where they are read.

    def _points(self, cuts: Sequence[Cut]) -> list[CutPoint]:
        ended = Counter(cut.block for cut in cuts if cut.how in ("join", "block"))
        names: Counter[str] = Counter()
        points: list[CutPoint] = []
        stage, size = 0, self._maps.size(cuts[0].index)
        for cut in cuts:
            if cut.kind != "stem" and (stage == 0 or self._maps.size(cut.index) != size):
                stage += 1
            size = self._maps.size(cut.index)
            name = self._name(cut, ended)
            names[name] += 1
            unique = name if names[name] == 1 else f"{name}.{names[name]}"
            points.append(self._point(unique, cut, stage))
        return points

    def _name(self, cut: Cut, ended: Counter[str]) -> str:
        if cut.how == "stem":
            return "stem"
        if cut.how == "named":
            return cut.block
        if cut.how == "subsampling":
            return self._subsampling(cut)
        if cut.block and (cut.how == "layer" or ended[cut.block] == 1):
            return cut.block
        return self._branches.child(self._between(cut.begin, cut.end), cut.block)

    def _subsampling(self, cut: Cut) -> str:
        """Return the largest module that subsamples and does not hold the block behind it."""
        ran = reversed(self._between(0, cut.index))
        name: str = next((op.module for op in ran if multiplies(op.name)), cut.block)
        while "." in name and not inside(cut.block, name.rpartition(".")[0]):
            name = name.rpartition(".")[0]
        return name

    def _point(self, name: str, cut: Cut, stage: int) -> CutPoint:
        layout = self._maps.layout(cut.index)
        if layout is None:
            raise ValueError(f"'{name}' is no feature map")
        point = CutPoint(
            name, cut.kind, stage, None, "output", layout, self._recorded(cut.index),
            self._join(cut.end),
        )
        return self._by_module(point, cut.index)

    def _by_module(self, point: CutPoint, index: int) -> CutPoint:
        """Read a point at a module that takes or returns its value, or that seen otherwise."""
        seen = index
        while True:
            passages = [
                passage
                for passage in self._flow.passages
                if passage.value == Value(seen)
                and passage.module
                and self._flow.calls[passage.module] == 1
            ]
            if passages:
                first = min(passages, key=lambda p: (p.at == "input", len(p.module)))
                layout = self._maps.layout(seen)
                if layout is not None:
                    return replace(
                        point, module=first.module, at=first.at, layout=layout, operation=None
                    )
            after = bisect_right(self._dominators, seen)
            if after == len(self._dominators):
                return point
            following = self._dominators[after]
            if not self._moved_from(Value(following), seen) or self._loses(following, seen):
                return point
            seen = following

    def _loses(self, index: int, origin: int) -> bool:
        sizes = [torch.Size(self._operations[i].shape).numel() for i in (index, origin)]
        return sizes[0] != sizes[1]

    def _recorded(self, index: int) -> Recorded:
        operation = self._operations[index]
        return Recorded(operation.alike, operation.nth)

    def _join(self, index: int) -> Join | None:
        """Return the join that an operation is, if its branch can be silenced."""
        operation = self._operations[index]
        if operation.name not in ADDITIONS or not self._joins(index):
            return None
        before = self._before(index)
        operands = [(n, arg) for n, arg in enumerate(operation.args) if isinstance(arg, Value)]
        whole = [
            (len(self._ancestors(arg, before)), n)
            for n, arg in operands
            if self._flow.shape_of(arg) == operation.shape
        ]
        if len(whole) < 1 or len(operands) != 2:
            return None
        return Join(self._recorded(index), min(whole)[1])

    def _ancestors(self, value: Value, stream: int) -> set[int]:
        """Return the operations behind the stream that a value comes from."""
        found: set[int] = set()
        missing = [value.operation]
        while missing:
            index = missing.pop()
            if index > stream and index not in found:
                found.add(index)
                missing += [v.operation for v in self._operations[index].operands()]
        return found
