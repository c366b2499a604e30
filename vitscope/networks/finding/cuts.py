"""Where a network is cut: behind joins, the stem and what subsamples, or else behind layers."""

from bisect import bisect_left
from dataclasses import dataclass, replace

from vitscope.networks.finding.branches import pattern
from vitscope.networks.finding.cut_points import How, Kind, Side
from vitscope.networks.finding.operations import (
    ACTIVATIONS,
    CONVOLUTIONS,
    POOLINGS,
    inside,
    multiplies,
)
from vitscope.networks.finding.recorded_pass import RecordedPass

# A stretch between two cuts with more of the network than this is cut at layers too.
LARGE_SHARE = 0.2


@dataclass(frozen=True, order=True)
class Cut:
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


def layer_kind(recorded: RecordedPass, start: int, end: int) -> Kind:
    """Return the kind of a part between two values that has no shortcut."""
    if recorded.operations[end].name in POOLINGS:
        return "pool"
    kind = recorded.kind(start, end)
    # Without a shortcut, a convolution is one however wide it is.
    convolves = any(op.name in CONVOLUTIONS for op in recorded.between(start, end))
    return "conv" if kind == "mlp" and convolves else kind


class CutFinder:
    """Finds where a network is cut: on this side of norms of sums."""

    def __init__(self, recorded: RecordedPass, norms: Side = "after") -> None:
        self._pass = recorded
        self._norms = recorded.norms if norms == "after" else {}
        self._maps = recorded.maps
        self._operations = recorded.operations
        self._dominators = recorded.dominators

    def find(self) -> list[Cut]:
        """Return all cuts in order."""
        return self._with_plain_cuts(self._cuts())

    def _cuts(self) -> list[Cut]:
        """Return the cuts of all blocks, and before them the stem and every subsampling."""
        blocks = self._blocks()
        if not blocks:
            return []
        stem = self._stem(blocks[0])
        cuts = [Cut(stem, "stem", "stem", stem, "", 0, 0)]
        if stem == 0:
            # The images are no map of the network: what takes them is its stem.
            cuts = [replace(blocks.pop(0), how="stem", kind="stem")]
        for block in blocks:
            # What subsamples stands before a block, or in it before its branch begins.
            for entry in (block.start, block.begin):
                last = cuts[-1].index
                if entry > last and self._maps.size(entry) not in (
                    None,
                    self._maps.size(last),
                ):
                    kind: Kind = "msa" if self._pass.kind(last, entry) == "msa" else "pool"
                    cuts.append(
                        Cut(entry, "subsampling", kind, entry, block.block, block.start, last)
                    )
            cuts.append(block)
        return cuts

    def _blocks(self) -> list[Cut]:
        joins = self._pass.map_joins
        holding = {self._operations[d].module for d in joins}
        blocks = [self._block(d, self._operations[d].module) for d in joins]
        blocks += [self._block(*plain) for plain in self._blocks_without_joins(holding)]
        return sorted(blocks)

    def _blocks_without_joins(self, holding: set[str]) -> list[tuple[int, str]]:
        """Return where blocks end that have no shortcut: those named as others that have one."""
        patterns = {pattern(block) for block in holding if block}
        return [
            (passage.value.operation, passage.module)
            for passage in self._pass.flow.passages
            if passage.at == "output"
            and pattern(passage.module) in patterns
            and passage.value.operation in self._dominators
            and self._maps.layout(passage.value.operation)
            and not any(inside(other, passage.module) for other in holding)
            and self._matrices(passage.module) > 1
        ]

    def _matrices(self, module: str) -> int:
        ran = (self._operations[i] for i in self._pass.order)
        return sum(inside(op.module, module) and multiplies(op.name) for op in ran)

    def _block(self, end: int, block: str) -> Cut:
        """Return the cut where a block ends: behind the activation or norm of its sum, if any."""
        index = self._pass.followed_by(end, ACTIVATIONS) or self._norms.get(end, end)
        start = self._entry(end, block)
        # A shortcut starts where its branch does; a block without one is all branch.
        how: How = "join" if self._pass.joins(end) else "block"
        begin = self._pass.before(end) if how == "join" else start
        kind = self._pass.kind_of_join(begin, end) if how == "join" else self._pass.kind(begin, end)
        return Cut(index, how, kind, end, block, start, begin)

    def _entry(self, end: int, module: str) -> int:
        """Return the operation whose value enters the module in which an operation is."""
        if not module:
            return self._pass.before(end)
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
            if not any(multiplies(op.name) for op in self._pass.between(0, entry)):
                break
            if self._maps.size(entry) not in (None, self._maps.size(first.start)):
                return entry
        return first.start

    def _with_plain_cuts(self, cuts: list[Cut]) -> list[Cut]:
        """Add cuts where there are no joins, or in large stretches between them."""
        if not cuts:
            plain = self._plain_cuts(0, self._pass.order[-1])
            return [replace(plain[0], kind="stem", how="stem"), *plain[1:]] if plain else []
        within = [(cut.start, cut.index) for cut in cuts if cut.how in ("join", "block")]
        added: list[Cut] = []
        for start, end, share in self._pass.stretches([cut.index for cut in cuts])[1:]:
            if share > LARGE_SHARE:
                added += [
                    cut
                    for cut in self._plain_cuts(start, end)
                    if not any(first < cut.index <= last for first, last in within)
                ]
        return sorted([*cuts, *added])

    def _plain_cuts(self, start: int, end: int) -> list[Cut]:
        """Return where the activation of a convolution, a concatenation or a pooling ends."""
        cuts: list[Cut] = []
        last = start
        for index in self._dominators:
            if start < index < end and self._ends_layer(last, index):
                cut = Cut(
                    index, "layer", layer_kind(self._pass, last, index), index, "", last, last
                )
                module = self._operations[index].module
                layer = self._pass.largest_module(module, last, index)
                cuts.append(replace(cut, block=layer))
                last = index
        return cuts

    def _ends_layer(self, last: int, index: int) -> bool:
        operation, size = self._operations[index], self._maps.size(index)
        if size is None or (size == (1, 1) and self._maps.size(last) != (1, 1)):
            return False
        convolved = any(op.name in CONVOLUTIONS for op in self._pass.between(last, index))
        if operation.name == "cat":
            return convolved
        return operation.name in POOLINGS or (operation.name in ACTIVATIONS and convolved)
