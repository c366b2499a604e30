"""Find the cut points of any network from what it computes, or take those that a study names."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import find_main_operation
from vitscope.networks.finding.cut_points import Addition, CutPoint, Join, Side
from vitscope.networks.finding.cuts import Cut, CutFinder, Points, named_cuts
from vitscope.networks.finding.dataflow import Passage, Value, record
from vitscope.networks.finding.recorded_pass import RecordedPass


class _Namer:
    def __init__(self, recorded: RecordedPass) -> None:
        self._pass = recorded

    def make_points(self, cuts: Sequence[Cut]) -> list[CutPoint]:
        if not cuts:
            return []
        ended = Counter(cut.block for cut in cuts if cut.how in ("join", "block"))
        names: Counter[str] = Counter()
        points: list[CutPoint] = []
        stage, size = 0, self._pass.maps.size(cuts[0].index)
        for number, cut in enumerate(cuts):
            if cut.kind != "stem" and (stage == 0 or self._pass.maps.size(cut.index) != size):
                stage += 1
            size = self._pass.maps.size(cut.index)
            name = self._name_of_cut(cut, ended)
            names[name] += 1
            unique = name if names[name] == 1 else f"{name}#{names[name]}"
            before = cuts[number - 1].index if number else 0
            points.append(self._point_of_cut(unique, cut, stage, before))
        return points

    def _name_of_cut(self, cut: Cut, ended: Counter[str]) -> str:
        if cut.how == "stem":
            return "stem"
        if cut.how == "named":
            return cut.block
        if cut.how == "subsampling":
            # Name the largest module that subsamples without holding the block after it.
            ran = reversed(self._pass.between(0, cut.index))
            name: str = next((op.module for op in ran if ops.multiplies(op.name)), cut.block)
            while "." in name and not ops.inside(cut.block, name.rpartition(".")[0]):
                name = name.rpartition(".")[0]
            return name
        if cut.block and (cut.how == "layer" or ended[cut.block] == 1):
            return cut.block
        doing = find_main_operation(self._pass.between(cut.begin, cut.end))
        if doing is None or doing.module == cut.block:
            return f"{cut.block}.join".lstrip(".")
        return self._pass.largest_module(doing.module, cut.begin, cut.end) or cut.how

    def _point_of_cut(self, name: str, cut: Cut, stage: int, before: int) -> CutPoint:
        layout = self._pass.maps.layout(cut.index)
        if layout is None:
            raise VitscopeError(
                f"nobody can tell where in the image the values of {quoted(name)} lie, as where a "
                f"network has several streams; name the points to read, as `points`."
            )
        side: Side | None = "after" if cut.index in self._pass.norms.values() else None
        if cut.index in self._pass.norms:
            side = "before"
        join = self._join_of_cut(cut, before)
        # Prefer to read at a module that takes or returns the value, perhaps in another layout.
        for seen in self._moves_of_value(cut.index):
            passage, moved = self._find_passage(seen, cut.block), self._pass.maps.layout(seen)
            if passage is not None and moved is not None:
                module, at = passage.module, passage.at
                return CutPoint(name, cut.kind, stage, module, at, moved, None, join, cut.how, side)
        which = self._pass.operations[cut.index].which
        return CutPoint(name, cut.kind, stage, None, "output", layout, which, join, cut.how, side)

    def _find_passage(self, index: int, block: str) -> Passage | None:
        """Return where a module takes or returns a value, preferring the output of `block`."""
        flow = self._pass.flow
        passages = [
            passage
            for passage in flow.passages
            if passage.value == Value(index) and flow.calls[passage.module] == 1 and passage.module
        ]
        order = sorted(passages, key=lambda p: (p.module != block, p.at == "input", len(p.module)))
        return order[0] if order else None

    def _moves_of_value(self, index: int) -> Iterator[int]:
        """Yield an operation, and the later operations that only move its whole value."""
        yield index
        size = prod(self._pass.operations[index].shape)
        for following in self._pass.dominators[bisect_right(self._pass.dominators, index) :]:
            moved = self._pass.moved_from(Value(following), index)
            if not moved or prod(self._pass.operations[following].shape) != size:
                return
            yield following

    def _join_of_cut(self, cut: Cut, before: int) -> Join | None:
        """Return the join at a cut; None if there is none, or its branch cannot be silenced."""
        if cut.how == "stem" or not self._pass.joins(cut.end):
            return None
        way = self._pass.way(cut.end)
        if way is None:
            return None
        operations = self._pass.operations
        additions = tuple(
            Addition(operations[each.operation].which, each.stream, each.branch)
            for each in way.sums
        )
        unchanged = cut.index == cut.end or (
            operations[cut.index].name == "relu" and self._comes_from_relu(before)
        )
        arrives = self._pass.moved_from(Value(way.start), before)
        identity = unchanged and way.unchanged and arrives
        last = way.sums[-1].operation
        # Take a stack's layout from where it is summed up.
        summed = cut.end if operations[last].name in ops.STACKS else last
        return Join(additions, identity, self._pass.maps.layout(summed) if way.direct else None)

    def _comes_from_relu(self, index: int) -> bool:
        """Tell whether a value comes from a ReLU, so that a second ReLU leaves it unchanged."""
        operation = self._pass.operations[index]
        while operation.name in ops.POOLINGS | ops.MOVES and len(operation.operands()) == 1:
            operation = self._pass.operations[operation.operands()[0].operation]
        return operation.name == "relu"


# A stretch between two cut points that exceeds both of these holds several streams.
TOO_LARGE_SHARE = 0.4  # share of the network's layers
ADDITIONS_OF_STREAMS = 10  # additions of maps


@dataclass(frozen=True)
class FoundPoints:
    """Holds the cut points of a network, and describes what they do not cover.

    `outputs` is the shape of the network's output for one image. `lost` is the number of
    unreadable sums after the last cut point. `warnings` are sentences that name modules.
    """

    points: list[CutPoint]
    uncovered: list[str]
    outputs: tuple[int, ...]
    lost: int = 0
    warnings: tuple[str, ...] = ()


def find_cut_points(
    model: nn.Module,
    images: Tensor,
    run: Callable[[Tensor], Any] | None = None,
    points: Points | None = None,
    norms: Side = "after",
) -> FoundPoints:
    """Return the cut points of a network, given at least two `images`.

    Cut points lie at the modules that `points` name, or else are found. `run`, if given, is called
    in place of the network. `norms` says whether to read the stream before or after the
    normalization layers that follow sums.
    """
    recorded = RecordedPass(model, record(model, images, run))
    outputs = recorded.flow.shape_of(recorded.flow.result)[1:]
    if points is not None:
        if norms == "before":
            raise VitscopeError(
                "norms: `points` say themselves on which side of a norm they lie: leave it out."
            )
        named = _Namer(recorded).make_points(named_cuts(recorded, points))
        return FoundPoints(named, [], outputs)
    if norms == "before" and not recorded.norms:
        raise VitscopeError(
            "norms: no block of the network normalizes the sum of stream and branch, so that there "
            "is no side to choose: leave it out."
        )
    cuts = CutFinder(recorded, norms).find_cuts()
    found = _Namer(recorded).make_points(cuts)
    joined = {cut.end for cut in cuts}
    beside = [d for d in recorded.dominators if recorded.joins(d) and d not in joined]
    # A sum of many tokens or pixels is lost if their places in the image are unknown.
    lost = [d for d in beside if recorded.maps.layout(d) is None and recorded.holds_many_vectors(d)]
    said = [*_warn_of_lost_sums(recorded, cuts, lost)]
    _refuse_several_streams(recorded, cuts, found, said)
    behind = sum(index > cuts[-1].index for index in lost)
    every = recorded.additions(0, recorded.order[-1])
    inner = [index for index in every if index not in {*joined, *beside}]
    counts = {"within branches": len(inner), "of values that are no maps": len(beside)}
    uncovered = [f"{count} additions {where}" for where, count in counts.items() if count]
    warnings = (*said, *_warn_of_unread_branches(recorded, cuts, found))
    return FoundPoints(found, uncovered, outputs, behind, warnings)


def _refuse_several_streams(
    recorded: RecordedPass, cuts: Sequence[Cut], points: Sequence[CutPoint], lost: Sequence[str]
) -> None:
    if not cuts:
        nowhere = (
            "nowhere do all paths from the images meet in a map, as where it has several streams"
        )
        raise VitscopeError(
            f"no cut point was found in the network: {lost[0] if lost else nowhere}; name the "
            f"points to read, as `points`."
        )
    names = ["the images", *(point.name for point in points), "the result"]
    for position, (start, end, share) in enumerate(recorded.stretches([cut.index for cut in cuts])):
        additions = len(recorded.additions(start, end))
        if share > TOO_LARGE_SHARE and additions > ADDITIONS_OF_STREAMS:
            raise VitscopeError(
                f"only part of the network was found: {len(cuts)} cut points, and between "
                f"{quoted(names[position])} and {quoted(names[position + 1])} lie "
                f"{share:.0%} of its layers, with {additions} additions to several streams at "
                f"once; name the points to read, as `points`."
            )


def _warn_of_lost_sums(
    recorded: RecordedPass, cuts: Sequence[Cut], lost: Sequence[int]
) -> Iterator[str]:
    if not lost:
        return
    last = max((cut.index for cut in cuts if cut.index < lost[0]), default=0)
    way = [d for d in recorded.dominators if last < d <= lost[0]]
    first = next((d for d in way if recorded.maps.layout(d) is None), lost[0])
    operation = recorded.operations[first]
    yield (
        f"in {quoted(operation.module or 'the network')} the places of tokens are lost "
        f"({operation.name}): {len(lost)} sums are in no figure, from "
        f"{quoted(recorded.operations[lost[0]].module)} to "
        f"{quoted(recorded.operations[lost[-1]].module)}"
    )


def _warn_of_unread_branches(
    recorded: RecordedPass, cuts: Sequence[Cut], points: Sequence[CutPoint]
) -> Iterator[str]:
    """Yield a warning for each branch without lesion or ratio, and each stream without a sum."""
    for cut, point in zip(cuts, points, strict=True):
        if cut.how == "join" and point.join is None:
            partial = recorded.operations[cut.end].name in ("cat", "write")
            why = (
                "the stream is added to some of the channels alone"
                if partial
                else "nobody can tell which side of the sum is the shortcut"
            )
            yield f"at {quoted(point.name)} {why}: it has no lesion and no ratio of the two"
        elif point.join is not None and point.join.layout is None:
            yield f"at {quoted(point.name)} the sides of the sum are not read one by one: no ratio"
    for index in recorded.dominators[1:]:
        if recorded.meets_branch_without_sum(index) and recorded.holds_many_vectors(index):
            operation = recorded.operations[index]
            yield (
                f"in {quoted(operation.module or 'the network')} stream and branch meet in "
                f"{quoted(operation.name)}, which is read as no sum: its branch is in no figure"
            )
