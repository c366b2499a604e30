from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitscope import progress
from vitscope.progress import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1000.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def test_it_tells_what_is_done_how_fast_and_what_is_left(clock: Callable[[float], None]) -> None:
    lines: list[str] = []
    counted = Progress(4, "batches", lines.append)
    for seconds in (20, 20, 80, 40):
        clock(seconds)
        counted.advance()
    assert lines == [
        "1 of 4 batches, 20 s each, about 1 min 0 s left",
        "2 of 4 batches, 20 s each, about 40 s left",
        "3 of 4 batches, 40 s each, about 40 s left",
        "4 of 4 batches, 40 s each, took 2 min 40 s",
    ]


def test_lines_are_seconds_apart_and_the_last_is_always_said(
    clock: Callable[[float], None],
) -> None:
    lines: list[str] = []
    counted = Progress(1000, "points", lines.append)
    for _ in range(40):
        clock(0.25)
        counted.advance(25)
    assert lines == [
        "500 of 1000 points, 100 points per s, about 5 s left",
        "1000 of 1000 points, 100 points per s, took 10 s",
    ]


def test_a_clock_that_stands_still_breaks_nothing(clock: Callable[[float], None]) -> None:
    lines: list[str] = []
    Progress(1, "batches", lines.append).advance()
    assert lines == ["1 of 1 batches, took 0 s"]


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 5)), min_size=1, max_size=40))
def test_it_is_never_too_chatty(steps: list[tuple[float, int]]) -> None:
    now = 0.0
    said: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "monotonic", lambda: now)
        total = sum(count for _, count in steps)
        counted = Progress(total, "images", lambda line: said.append(now))
        for seconds, count in steps:
            now += seconds
            counted.advance(count)
    assert said[-1] == now
    gaps = [later - earlier for earlier, later in pairwise([0.0, *said[:-1]])]
    assert all(gap >= progress.SECONDS_BETWEEN_NEWS for gap in gaps)
