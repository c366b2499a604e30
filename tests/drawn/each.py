"""Networks in which each word of the grammar stands alone, between plain blocks."""

from collections.abc import Iterator
from itertools import cycle

from tests.drawn.additions import SPELLINGS, count_terms, needs_front
from tests.drawn.modules import Tokens
from tests.drawn.networks import BETWEENS, HEADS, NORMS, PLACEMENTS, SHORTCUTS, STEMS, WAYS
from tests.drawn.specs import Between, Block, Network, Term, Unit
from tests.drawn.terms import SCALES, STRIDING, WHAT

STREAMS = ("tokens", "nchw", "nhwc")


def each() -> Iterator[Network]:
    """Yield a network for each word."""
    for stream in STREAMS:
        norm = f"pre {NORMS[stream][0]}"
        plain = Unit((Term("mlp" if stream == "tokens" else "conv"),), norm=norm)

        def of(unit: Unit, stream: str = stream, plain: Unit = plain, **others: str) -> Network:
            blocks = Block((plain,)), Block((unit,)), Block((plain,))
            return Network(stream=stream, blocks=blocks, **others)

        for how in STEMS:
            yield of(plain, stem=how)
        for head in HEADS[stream]:
            yield of(plain, head=head)
        for what in WHAT:
            yield of(Unit((Term(what),), norm=norm))
        for scale in SCALES:
            yield of(Unit((Term("mlp", scale),), norm=norm))
        for placed in PLACEMENTS:
            for by in NORMS[stream]:
                unit = Unit((Term("mlp"),), norm="none" if placed == "none" else f"{placed} {by}")
                yield Network(stream=stream, blocks=(Block((unit,)), Block((unit, unit))))
        for way in WAYS:
            # Branches that are shared are of one kind.
            block = Block((plain, plain if way == "shared" else Unit(norm=norm)), way)
            yield Network(stream=stream, blocks=(Block((plain,)), block, Block((plain,))))
        for between in BETWEENS:
            middle = Between(between)
            blocks = Block((plain,)), middle, Block((plain,)), Block((plain,))
            if between != "prune" or stream == "tokens":
                yield Network(stream=stream, size=32, blocks=blocks)
        for inside in ("sequence", "channels") if stream == "tokens" else ("channels",):
            yield of(Unit(norm=norm, inside=inside))
    for stream in STREAMS:
        yield Network(stream=stream, unused=True)
        yield Network(stream=stream, exits=True)
        yield Network(stream=stream, counts=True)
        yield Network(stream=stream, hooked=True)
        yield Network(stream=stream, returns="dict")
    for what in WHAT:
        yield Network(columns=True, blocks=(Block((Unit((Term(what),)), Unit())),))
    for front in Tokens.COUNTS:
        for unit in (Unit(), Unit((Term("attend mha"),)), Unit(inside="sequence")):
            yield Network(front=front, blocks=(Block((unit,)), Block((unit,))))
            yield Network(front=front, head="class", blocks=(Block((unit,)), Block((unit,))))
    for back in ("class", "registers"):
        yield Network(back=back, blocks=(Block((Unit(), Unit((Term("attend hand"),)))),))
    for shortcut in SHORTCUTS:
        for stride in (1, 2):
            if shortcut == "pool" and stride == 1:
                continue
            for what in STRIDING:
                unit = Unit((Term(what),), norm="pre batch", shortcut=shortcut, stride=stride)
                last = Block((Unit((Term("conv"),), norm="pre batch"),))
                blocks = (last, Block((unit,)), last)
                yield Network(size=32, stream="nchw", blocks=blocks)
    kinds = cycle((Term("attend hand"), Term("mlp"), Term("conv 1")))
    for add in SPELLINGS:
        terms = tuple(term for term, _ in zip(kinds, range(count_terms(add)), strict=False))
        front = "class" if needs_front(add) else ""
        unit = Unit(terms, add)
        yield Network(front=front, blocks=(Block(), Block((unit,)), Block()))
        yield Network(front=front, blocks=(Block((unit,)), Block((unit,))))
