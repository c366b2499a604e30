from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Expected(NamedTuple):
    """What names a row of a table, how far its values may differ, and which are not compared."""

    keys: list[str]
    relative: float
    absolute: float = 0.0
    without: tuple[str, ...] = ()
    # Absolute tolerances of columns that have their own.
    own: Mapping[str, float] = MappingProxyType({})
