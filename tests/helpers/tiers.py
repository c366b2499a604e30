"""What is tried with every change, and what every night."""

from collections.abc import Iterable
from typing import Any

import pytest


def some_of(values: Iterable[Any], *with_every_change: Any) -> list[Any]:
    """Return the values of a parameter, those that are not named for the night."""
    return [
        value if value in with_every_change else pytest.param(value, marks=pytest.mark.nightly)
        for value in values
    ]
