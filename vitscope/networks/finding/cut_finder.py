"""Find where to cut a network: after stem, joins, subsampling and layers, or at named modules."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import pattern_of_module
from vitscope.networks.finding.cut_points import How, Kind, Side
from vitscope.networks.finding.recorded_pass import RecordedPass

Points = Sequence[Mapping[str, Any]]

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


def kind_of_cut(recorded: RecordedPass, start: int, end: int) -> Kind:
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
        # A module that takes the images themselves, as around a whole network, is no block.
        return self._dominators[position] or self._pass.before(end)

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
                kind, module = kind_of_cut(self._pass, last, index), self._operations[index].module
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


def named_cuts(recorded: RecordedPass, points: Points) -> list[Cut]:
    entries = [
        _locate_named_cut(recorded, name, point)
        for point in points
        for name in _modules_of_named_cuts(recorded, point)
    ]
    cuts: list[Cut] = []
    last = 0
    for index, name, at in sorted(entries):
        if cuts and index == last:
            raise VitscopeError(
                f"points: the {at} of {quoted(name)} is the same value as "
                f"{quoted(cuts[-1].block)}, which is named too: leave one out."
            )
        called = name if at == "output" else f"{name}.input"
        end = _join_of_named_cut(recorded, index)
        begin = recorded.before(end) if recorded.joins(end) else last
        # After a point within a branch, only the sum may be left: take the branch's kind.
        works = any(ops.multiplies(op.name) for op in recorded.between(last, index))
        kind: Kind = kind_of_cut(recorded, last if works else begin, index) if cuts else "stem"
        cuts.append(Cut(index, "named", kind, end, called, last, begin))
        last = index
    return cuts


def _modules_of_named_cuts(recorded: RecordedPass, point: Mapping[str, Any]) -> list[str]:
    """Return the modules that match a pattern: `*` is one part of a name, `**` any text."""
    fitting = re.escape(point["module"]).replace(r"\*\*", ".*").replace(r"\*", "[^.]*")
    names = [name for name in recorded.modules if re.fullmatch(fitting, name)]
    if not names:
        raise VitscopeError(
            f"points: the network has no module '{point['module']}'."
            f"{nearest(point['module'], recorded.modules)}"
        )
    return names


def _locate_named_cut(
    recorded: RecordedPass, name: str, point: Mapping[str, Any]
) -> tuple[int, str, str]:
    at, calls = point.get("at", "output"), recorded.flow.calls[name]
    if calls != 1:
        raise VitscopeError(
            f"points: {quoted(name)} runs {calls} times in a pass, allowed: modules that run once."
        )
    indices = [
        passage.value.operation
        for passage in recorded.flow.passages
        if (passage.module, passage.at) == (name, at) and passage.value.output == 0
    ]
    if not indices or recorded.maps.layout(indices[0]) is None:
        said = "it does not depend on the images"
        if indices:
            shape = recorded.operations[indices[0]].shape
            said = f"of {recorded.flow.images} images it has the shape {shape}"
        raise VitscopeError(f"points: the {at} of {quoted(name)} is no feature map: {said}.")
    if indices[0] not in recorded.dominators and not point.get("inside", False):
        raise VitscopeError(
            f"points: the {at} of {quoted(name)} is not the whole stream: the result also "
            f"depends on values that go around it. Say `inside: true` with the point to read "
            f"it all the same."
        )
    return indices[0], name, at


def _join_of_named_cut(recorded: RecordedPass, index: int) -> int:
    """Return the join that an activation or normalization follows, or else the operation itself."""
    operation = recorded.operations[index]
    before = [value.operation for value in operation.operands]
    closes = operation.name in ops.ACTIVATIONS | ops.NORMALIZATIONS
    activated = closes and before and recorded.joins(before[0])
    return before[0] if activated and before[0] in recorded.dominators else index
