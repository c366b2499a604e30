"""What the cut points are called, and how each is read and silenced."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.finding.cut_points import Addition, CutPoint, Join, Layout, Side
from vitscope.networks.finding.cuts import Cut
from vitscope.networks.finding.dataflow import Passage, Value
from vitscope.networks.finding.operations import MOVES, POOLINGS, STACKS, inside, multiplies
from vitscope.networks.finding.recorded_pass import RecordedPass
from vitscope.networks.finding.sums import Way


def describe_cuts(recorded: RecordedPass, cuts: Sequence[Cut]) -> list[CutPoint]:
    """Return the cut points of a recorded pass: where it is cut."""
    return _Namer(recorded).points(cuts) if cuts else []


class _Namer:
    def __init__(self, recorded: RecordedPass) -> None:
        self._pass = recorded

    def points(self, cuts: Sequence[Cut]) -> list[CutPoint]:
        ended = Counter(cut.block for cut in cuts if cut.how in ("join", "block"))
        names: Counter[str] = Counter()
        points: list[CutPoint] = []
        stage, size = 0, self._pass.maps.size(cuts[0].index)
        for number, cut in enumerate(cuts):
            if cut.kind != "stem" and (stage == 0 or self._pass.maps.size(cut.index) != size):
                stage += 1
            size = self._pass.maps.size(cut.index)
            name = self._name(cut, ended)
            names[name] += 1
            unique = name if names[name] == 1 else f"{name}#{names[name]}"
            before = cuts[number - 1].index if number else 0
            points.append(self._point(unique, cut, stage, before))
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
        main = self._pass.branches.main(self._pass.between(cut.begin, cut.end))
        if main is None or main.module == cut.block:
            return f"{cut.block}.join".lstrip(".")
        return self._pass.largest_module(main.module, cut.begin, cut.end) or cut.how

    def _subsampling(self, cut: Cut) -> str:
        """Return the largest module that subsamples and does not hold the block behind it."""
        ran = reversed(self._pass.between(0, cut.index))
        name: str = next((op.module for op in ran if multiplies(op.name)), cut.block)
        while "." in name and not inside(cut.block, name.rpartition(".")[0]):
            name = name.rpartition(".")[0]
        return name

    def _point(self, name: str, cut: Cut, stage: int, before: int) -> CutPoint:
        layout = self._pass.maps.layout(cut.index)
        if layout is None:
            raise VitscopeError(
                f"nobody can tell where in the image the values of {quoted(name)} lie, as where a "
                f"network has several streams; name the points to read, as `points`."
            )
        point = CutPoint(
            name,
            cut.kind,
            stage,
            None,
            "output",
            layout,
            self._pass.operations[cut.index].which,
            self._join(cut, before),
            cut.how,
            self._side(cut.index),
        )
        return self._by_module(point, cut.index, cut.block)

    def _side(self, index: int) -> Side | None:
        """Return on which side of the norm of a sum a value is, if it is the sum or the norm."""
        if index in self._pass.norms:
            return "before"
        return "after" if index in self._pass.norms.values() else None

    def _by_module(self, point: CutPoint, index: int, block: str) -> CutPoint:
        """Read a point at a module that takes or returns its value, or that seen otherwise."""
        for seen in self._seen_as(index):
            passage, layout = self._passage(seen, block), self._pass.maps.layout(seen)
            if passage is not None and layout is not None:
                return replace(
                    point, module=passage.module, at=passage.at, layout=layout, operation=None
                )
        return point

    def _passage(self, index: int, block: str) -> Passage | None:
        """Return where a module takes or returns a value: best is the block's own output."""
        flow = self._pass.flow
        passages = [
            passage
            for passage in flow.passages
            if passage.value == Value(index) and flow.calls[passage.module] == 1 and passage.module
        ]
        order = sorted(passages, key=lambda p: (p.module != block, p.at == "input", len(p.module)))
        return order[0] if order else None

    def _seen_as(self, index: int) -> Iterator[int]:
        """Yield an operation, and those behind it that move its whole value."""
        yield index
        size = prod(self._pass.operations[index].shape)
        for following in self._pass.dominators[bisect_right(self._pass.dominators, index) :]:
            moved = self._pass.moved_from(Value(following), index)
            if not moved or prod(self._pass.operations[following].shape) != size:
                return
            yield following

    def _join(self, cut: Cut, before: int) -> Join | None:
        """Return the join that a cut is behind, if its branch can be silenced."""
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
            operations[cut.index].name == "relu" and self._is_positive(before)
        )
        arrives = self._pass.moved_from(Value(way.start), before)
        identity = unchanged and way.unchanged and arrives
        return Join(additions, identity, self._layout_of_sides(way, cut.end))

    def _is_positive(self, index: int) -> bool:
        """Tell whether a value is of a ReLU, which another leaves as it is."""
        operation = self._pass.operations[index]
        while operation.name in POOLINGS | MOVES and len(operation.operands()) == 1:
            operation = self._pass.operations[operation.operands()[0].operation]
        return operation.name == "relu"

    def _layout_of_sides(self, way: Way, end: int) -> Layout | None:
        """Return how the two sides of a sum lie, if they can be read."""
        last = way.sums[-1].operation
        stacked = self._pass.operations[last].name in STACKS
        return self._pass.maps.layout(end if stacked else last) if way.direct else None
