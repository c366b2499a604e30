"""What runs with every change, in two tiers, and what every night or after a run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

MARKS = ("others", "nightly", "last_run")
# The tests that a tier runs: by an expression of marks, below some places.
Selection = tuple[str, tuple[str, ...]]
# A test that is collected: its file, and its marks of those.
Collected = tuple[Path, frozenset[str]]
COLLECTED = pytest.StashKey[set[Collected]]()


def some_of(values: Iterable[Any], *with_every_change: Any) -> list[Any]:
    """Return the values of a parameter, with a mark for the night at all others."""
    return [
        value if value in with_every_change else pytest.param(value, marks=pytest.mark.nightly)
        for value in values
    ]


def marks_of(item: pytest.Item) -> Collected:
    """Return what decides on the tier of a test."""
    return item.path, frozenset(mark for mark in MARKS if item.get_closest_marker(mark))


def is_selected(test: Collected, selection: Selection, root: Path) -> bool:
    path, marks = test
    expression, places = selection
    if not any(path.is_relative_to(root / place) for place in places):
        return False
    return bool(eval(expression, {}, {mark: mark in marks for mark in MARKS}))
