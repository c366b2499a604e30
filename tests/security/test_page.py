"""The page says what the tests try, in numbers that are theirs."""

import re

from tests.security import attacks, fuzz, targets, test_archives, test_pickles, test_settings

PAGE = fuzz.PAGE.read_text(encoding="utf-8")


def test_counts_are_those_of_the_tests() -> None:
    pickles = (attacks.HARMFUL, test_pickles.ODD, test_pickles.GREEDY)
    places = len(test_pickles.PLACES)
    # And the three opcodes that name by number.
    total = places * (sum(map(len, pickles)) + 3)
    for sentence in (
        f"{len(attacks.HARMFUL)} pickles that run code",
        f"{len(test_pickles.ODD)} that are not tensors, {len(test_pickles.GREEDY)} that would fill",
        f"in {places} places: today's",
        f"{total} of {total} refused",
        f"{len(test_archives.OUTSIDE)} links, devices",
        f"{len(test_archives.WRONG)} arrays with false headers",
        f"{len(test_settings.TAGS)} tags, {len(test_settings.GREEDY)} texts",
        f"{len(test_settings.NAMES)} names in 5 places",
        f"{len(targets.TARGETS)} readers",
    ):
        assert sentence in PAGE


def test_every_reader_was_fuzzed_and_nothing_else_came_of_it() -> None:
    fuzzed = PAGE.partition(fuzz.BEGIN)[2].partition(fuzz.END)[0]
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \| [\d,]+ \| [\d,]+ \| 0 \|$", fuzzed, re.MULTILINE)
    assert [name for name, _ in rows] == list(targets.TARGETS)
    assert all(int(count.replace(",", "")) >= fuzz.RUNS for _, count in rows)
