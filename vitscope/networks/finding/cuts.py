"""Find where to cut a network: after the stem, joins and subsampling, or else after layers."""

from bisect import bisect_left
from dataclasses import dataclass, replace

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import pattern_of_module
from vitscope.networks.finding.cut_points import How, Kind, Side
from vitscope.networks.finding.recorded_pass import RecordedPass

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
