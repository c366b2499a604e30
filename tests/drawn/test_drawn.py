"""Networks that a seed draws are measured right, or refused or told by name."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from tests.drawn import draw, read
from tests.drawn.comparing import FAILED, compare
from tests.drawn.kept import KEPT
from tests.drawn.shrinking import shrink_outcome
from tests.drawn.specs import Network

# How many are drawn at every change, in batches of which each is a test; and how many at night.
BATCH, BATCHES, AT_NIGHT = 5, 12, 2000


def check(specs: list[Network]) -> Counter[str]:
    """Compare networks; fail with the smallest that fails as the first of them does."""
    counts: Counter[str] = Counter()
    for spec in specs:
        outcome = compare(spec)
        counts[outcome.verdict] += 1
        if outcome.verdict in FAILED:
            smallest = shrink_outcome(outcome)
            pytest.fail(f"python -m tests.drawn {str(smallest.spec)!r}\n{smallest}", pytrace=False)
    return counts


@pytest.mark.parametrize("batch", range(BATCHES))
def test_drawn_networks_are_right_or_refused(batch: int) -> None:
    check([draw(seed) for seed in range(batch * BATCH, (batch + 1) * BATCH)])


@pytest.mark.parametrize("text", KEPT)
def test_what_was_wrong_once_is_right_or_refused(text: str) -> None:
    check([read(text)])


@pytest.mark.nightly
def test_networks_of_the_night() -> None:
    first = AT_NIGHT * datetime.now(UTC).toordinal()
    print(f"seeds from {first} on")
    counts: Counter[str] = Counter()
    for seed in range(first, first + AT_NIGHT):
        counts += check([draw(seed)])
    print(dict(counts))
