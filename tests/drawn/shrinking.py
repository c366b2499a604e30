from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TypeVar

from tests.drawn.additions import count_terms
from tests.drawn.comparing import Outcome, compare
from tests.drawn.specs import Block, Network, Spec, Term, Unit

S = TypeVar("S", bound=Spec)


def shrink_outcome(outcome: Outcome, tries: int = 300) -> Outcome:
    """Return how the smallest network compares that fails as another does, found step by step."""
    last, candidates = outcome, simpler(outcome.spec)
    for _ in range(tries):
        smaller = next(candidates, None)
        if smaller is None:
            break
        try:
            found = compare(smaller)
        except Exception:
            # What cannot be built is no network.
            continue
        if (found.verdict, found.cause) == (outcome.verdict, outcome.cause):
            last, candidates = found, simpler(smaller)
    return last


def simpler(spec: Network) -> Iterator[Network]:
    """Yield networks that are a step simpler: without a block, without a unit, with a default."""
    for index in range(len(spec.blocks)):
        rest = spec.blocks[:index] + spec.blocks[index + 1 :]
        if any(isinstance(each, Block) for each in rest):
            yield replace(spec, blocks=rest)
    for index, block in enumerate(spec.blocks):
        if isinstance(block, Block):
            for other in _simpler_blocks(block):
                yield replace(spec, blocks=(*spec.blocks[:index], other, *spec.blocks[index + 1 :]))
    yield from _defaults(spec, leave=("blocks", "seed"))


def _simpler_blocks(block: Block) -> Iterator[Block]:
    for index in range(len(block.units) if len(block.units) > 1 else 0):
        yield replace(block, units=block.units[:index] + block.units[index + 1 :])
    yield from _defaults(block, leave=("units",))
    for index, unit in enumerate(block.units):
        for other in _simpler_units(unit):
            yield replace(block, units=(*block.units[:index], other, *block.units[index + 1 :]))


def _simpler_units(unit: Unit) -> Iterator[Unit]:
    if unit.terms != (Term(),) or unit.add != Unit().add:
        yield replace(unit, terms=(Term(),), add=Unit().add)
    if count_terms(unit.add) > 1:
        for term in unit.terms:
            yield replace(unit, terms=(term,), add=Unit().add)
    yield from _defaults(unit, leave=("terms", "add"))
    if count_terms(unit.add) == 1:
        yield from _defaults(unit, leave=("terms", "norm", "shortcut", "stride", "inside", "act"))
    for index, term in enumerate(unit.terms):
        for other in _defaults(term, leave=()):
            yield replace(unit, terms=(*unit.terms[:index], other, *unit.terms[index + 1 :]))


def _defaults(spec: S, leave: tuple[str, ...]) -> Iterator[S]:
    """Yield a spec with one of its values as by default."""
    for each in fields(spec):  # type: ignore[arg-type]
        if each.name not in leave and getattr(spec, each.name) != each.default:
            yield replace(spec, **{each.name: each.default})
