"""The measures that there are: each is a folder beside this file, and nothing lists them.

A folder is a measure if it holds `measure.py`. What is needed of one is imported by name, so that a
job reads the rooms that it works in and no others.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest
from vitscope.measures.measure import FigureKind, Measure

if TYPE_CHECKING:
    from vitscope.files.tables import Table

HERE = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """Return the names of all measures, which are those of their folders and of their tables."""
    return tuple(sorted(file.parent.name for file in HERE.glob("*/measure.py")))


def module(measure: str, part: str) -> str:
    """Return the name of a module of a measure."""
    if measure not in names():
        raise VitscopeError(f"There is no measure '{measure}'.{nearest(measure, names())}")
    return f"vitscope.measures.{measure}.{part}"


def has(measure: str, part: str) -> bool:
    """Tell whether a measure has a module of this name."""
    return (HERE / measure / f"{part}.py").is_file()


@cache
def declared(measure: str) -> Measure:
    """Return what a measure says of itself."""
    found: Measure = import_module(module(measure, "measure")).MEASURE
    return found


@cache
def kinds() -> dict[str, FigureKind]:
    """Return the kinds of figures, by the names that studies give them, and who draws each."""
    return {kind: figure for name in names() for kind, figure in declared(name).figures().items()}


def table(measure: str) -> "Table":
    """Return the columns of the table of a measure."""
    found: Table = import_module(module(measure, "table")).TABLE
    return found


def part_table(measure: str) -> "Table":
    """Return the columns of its parts: those of its table, unless it says others."""
    columns = import_module(module(measure, "table"))
    found: Table = getattr(columns, "PART", columns.TABLE)
    return found
