"""Make cut points of cuts: name them, count stages, and find where to read them and their joins."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import find_main_operation
from vitscope.networks.finding.cut_finder import Cut
from vitscope.networks.finding.cut_points import Addition, CutPoint, Join, Side
from vitscope.networks.finding.dataflow import Passage, Value
from vitscope.networks.finding.recorded_pass import RecordedPass


class CutNamer:
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
        # Where a shortcut leaves out positions or pads channels, another map arrives.
        sizes = {(self._pass.maps.size(i), self._pass.maps.channels(i)) for i in (before, cut.end)}
        arrives = self._pass.moved_from(Value(way.start), before) and len(sizes) == 1
        identity = unchanged and way.unchanged and arrives
        last = way.sums[-1].operation
        # Take a stack's layout from where it is summed up.
        summed = cut.end if operations[last].name in ops.STACKS else last
        return Join(additions, identity, self._pass.maps.layout(summed) if way.direct else None)

    def _comes_from_relu(self, index: int) -> bool:
        """Tell whether a value comes from a ReLU, so that a second ReLU leaves it unchanged."""
        operation = self._pass.operations[index]
        while operation.name in ops.POOLINGS | ops.MOVES and len(operation.operands) == 1:
            operation = self._pass.operations[operation.operands[0].operation]
        return operation.name == "relu"
