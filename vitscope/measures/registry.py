"""The measures that there are: each is in a folder beside this file, and nothing lists them.

A folder holds a measure if it has `measure.py`, and further measures of the same family if it has
`measure_NAME.py`. The other modules of the first are named by what they do (`compute.py`), those of
a further one say its name besides (`compute_NAME.py`). What is needed of a measure is imported by
name, so that a job reads the modules that it works with and no others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest
from vitscope.measures.measure import FigureKind, Measure

if TYPE_CHECKING:
    from vitscope.claims.evidence import Evidence
    from vitscope.files.tables import Columns, Table

HERE = Path(__file__).parent


@cache
def _places() -> dict[str, tuple[str, str]]:
    """Return the folder of each measure, and what the names of its modules say besides."""
    return dict(sorted(_find_places()))


def _find_places() -> Iterator[tuple[str, tuple[str, str]]]:
    for file in HERE.glob("*/measure*.py"):
        folder, further = file.parent.name, file.stem.removeprefix("measure").removeprefix("_")
        yield further or folder, (folder, further)


def _place(measure: str) -> tuple[str, str]:
    if measure not in _places():
        raise VitscopeError(f"There is no measure '{measure}'.{nearest(measure, names())}")
    return _places()[measure]


def names() -> tuple[str, ...]:
    """Return the names of all measures, which are those of their tables."""
    return tuple(_places())


def path(measure: str, file: str) -> Path:
    """Return where a file of a measure is, as `compute.py` or `caption_depth.rst`.

    What a family shares is named `compute`; `compute_depth` of a further measure NAME is
    `compute_NAME_depth`.
    """
    folder, further = _place(measure)
    name = Path(file)
    work, _, variant = name.stem.partition("_")
    stem = "_".join(filter(None, (work, further, variant)))
    return HERE / folder / f"{stem}{name.suffix}"


def module(measure: str, part: str) -> str:
    """Return the name of a module of a measure."""
    file = path(measure, f"{part}.py")
    return f"vitscope.measures.{file.parent.name}.{file.stem}"


def has(measure: str, part: str) -> bool:
    """Tell whether a measure has a module of this name."""
    return path(measure, f"{part}.py").is_file()


@cache
def declared(measure: str) -> Measure:
    """Return what a measure says of itself."""
    found: Measure = import_module(module(measure, "measure")).MEASURE
    figures = {kind: replace(figure, measure=measure) for kind, figure in found.figures.items()}
    return replace(found, name=measure, figures=figures)


@cache
def kinds() -> dict[str, FigureKind]:
    """Return the kinds of figures, by the names that studies give them, and who draws each."""
    return {kind: figure for name in names() for kind, figure in declared(name).figures.items()}


def merging_module(measure: str) -> str | None:
    """Return the module whose `merge` merges the parts; None where they are put below each other.

    That is a shared one, if the measure names it, or else its own.
    """
    own = module(measure, "merge") if has(measure, "merge") else None
    return declared(measure).merge.module or own


def claims_of(measure: str) -> "Mapping[str, Evidence]":
    """Return what the paper claims of the kinds of figures of a measure, and who counts it."""
    found: Mapping[str, Evidence] = {}
    if has(measure, "claims"):
        found = import_module(module(measure, "claims")).CLAIMS
    return found


def table(measure: str) -> "Table":
    """Return the table of a measure."""
    found: Table = import_module(module(measure, "table")).TABLE
    return found


def part_table(measure: str) -> "Table":
    """Return the table of its parts: that of the measure, unless it says another."""
    columns = import_module(module(measure, "table"))
    found: Table = getattr(columns, "PART", columns.TABLE)
    return found


def columns_of(measure: str) -> "Columns":
    """Return the columns of the table of a measure, as plain values: types and sentences."""
    return table(measure).columns


def part_columns_of(measure: str) -> "Columns":
    """Return the columns of its parts, as plain values."""
    return part_table(measure).columns
