import pytest

from tests.drawn import build, draw, read
from tests.drawn.additions import SPELLINGS, WEIGHTED, count_terms
from tests.drawn.comparing import FAILED, RIGHT, compare
from tests.drawn.each import each
from tests.drawn.kept import KEPT
from tests.drawn.shrinking import shrink_outcome, simpler
from tests.drawn.specs import Block, Network, Term, Unit
from tests.drawn.terms import SCANS
from tests.helpers.networks import described
from tests.helpers.tiers import some_of
from vitscope.networks.finding.blocks import list_blocks

# How many are drawn at every change, in batches of which each is a test; 2,000 are at night.
BATCH, BATCHES = 4, 5


def check(spec: Network) -> str:
    """Compare a network, and return the verdict; fail with the smallest that fails alike."""
    outcome = compare(spec)
    if outcome.verdict in FAILED:
        smallest = shrink_outcome(outcome)
        pytest.fail(f"python -m tests.drawn {str(smallest.spec)!r}\n{smallest}", pytrace=False)
    return outcome.verdict


@pytest.mark.parametrize("batch", range(BATCHES))
def test_drawn_networks_are_right_or_refused(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        check(draw(seed))


@pytest.mark.parametrize("text", KEPT)
def test_what_was_wrong_once_is_right_or_refused(text: str) -> None:
    check(read(text))


@pytest.mark.nightly
def test_each_word_alone_is_right_or_refused() -> None:
    verdicts = [check(spec) for spec in dict.fromkeys(each())]
    assert verdicts.count(RIGHT) > 0.8 * len(verdicts)


# Sums of several branches; of the others, `KEPT` has what was wrong, and a night each.
SUMS = [text for text in SPELLINGS if count_terms(text) > 1 and "g *" not in text]
TERMS = Term("attend hand"), Term(), Term("conv 1")


@pytest.mark.parametrize("text", some_of(SUMS, *(s for s in SUMS if s not in str(KEPT))))
def test_branches_are_all_that_is_added(text: str) -> None:
    block = Block((Unit(TERMS[: count_terms(text)], text),))
    spec = Network(blocks=(block, block))
    assert compare(spec).verdict == RIGHT
    points = list_blocks("drawn", build(spec)[0], described(16)).points
    unchanged = [point.join.identity for point in points if point.join]
    assert unchanged == [text not in WEIGHTED or WEIGHTED[text][0] == "x"] * 2


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("what", [*SCANS, "attend hand"])
def test_a_recurrence_or_attention_beside_its_like(what: str, size: int) -> None:
    other = Term("conv 1") if what in SCANS else Term(what)
    unit = Unit((Term(what), other), "x = (x + a) + b")
    assert compare(Network(size=size, blocks=(Block((unit,)), Block()))).verdict == RIGHT


@pytest.mark.parametrize("seed", range(20))
def test_a_network_is_printed_as_what_it_is_read_from(seed: int) -> None:
    assert read(repr(draw(seed))) == draw(seed)


def test_a_plain_network_has_the_numbers_of_its_own_switches() -> None:
    units = Unit((Term("attend hand"),)), Unit((Term(), Term("conv 1")), "x = (x + a) + b")
    assert compare(Network(blocks=(Block(units),))).verdict == RIGHT


def test_what_is_simpler_ends_at_the_smallest_network() -> None:
    spec, steps = draw(3), 0
    while smaller := next(simpler(spec), None):
        spec, steps = smaller, steps + 1
    assert steps > 5
    assert spec == Network(seed=3, blocks=(Block(),))
