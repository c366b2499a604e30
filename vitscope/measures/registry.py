"""The measures that there are: each is in a folder beside this file, and nothing lists them.

A folder holds a measure if it has `measure.py`, and further measures of the same family if it has
`measure_NAME.py`. The other modules of the first are named by what they do (`compute.py`), and of
a further one say its name besides (`compute_NAME.py`), but for `figure.py`, which the whole family
draws its figures by. What is needed of a measure is imported by name, so that a job reads the
modules that it works with and no others.

A study may have measures of its own besides, each in a file: `of(study)` knows both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest
from vitscope.measures.measure import FigureKind, Given, Measure

if TYPE_CHECKING:
    from vitscope.claims.claim import Evidence
    from vitscope.files.tables import Table
    from vitscope.settings.study import Study

HERE = Path(__file__).parent


@cache
def _places() -> dict[str, tuple[str, str]]:
    """Return the folder of each measure, and what the names of its modules say besides."""
    return dict(sorted(_find_places()))


def _find_places() -> Iterator[tuple[str, tuple[str, str]]]:
    for file in HERE.glob("*/measure*.py"):
        folder, further = file.parent.name, file.stem.removeprefix("measure").removeprefix("_")
        yield further or folder, (folder, further)


def path(measure: str, file: str) -> Path:
    """Return where a file of a measure is, as `compute.py` or `caption_depth.rst`.

    What a family shares is named `compute`; `compute_depth` of a further measure NAME is
    `compute_NAME_depth`.
    """
    if measure not in _places():
        raise VitscopeError(f"There is no measure '{measure}'.{nearest(measure, _places())}")
    folder, further = _places()[measure]
    name = Path(file)
    work, _, variant = name.stem.partition("_")
    return HERE / folder / f"{_joined(work, further, variant)}{name.suffix}"


@cache
def _declared(measure: str) -> Measure:
    found: Measure = import_module(BUILT_IN.module(measure, "measure")).MEASURE
    figures = {
        kind: replace(figure, measure=measure, plot=_plot_of(measure, figure))
        for kind, figure in found.figures.items()
    }
    return replace(found, name=measure, figures=figures)


def _plot_of(measure: str, figure: FigureKind) -> str:
    """Return the function that draws a kind of figure."""
    _, further = _places()[measure]
    return "plot" if figure.drawn_by else _joined("plot", further, figure.suffix)


def _joined(*parts: str) -> str:
    return "_".join(filter(None, parts))


@cache
def _kinds() -> dict[str, FigureKind]:
    return {kind: figure for name in _places() for kind, figure in _declared(name).figures.items()}


@dataclass(frozen=True)
class OwnMeasure:
    """A measure of a user's own: what it declares, its table, and the table of its parts.

    `claims` say where its claims are read, if its file has any.
    """

    measure: Measure
    table: "Table"
    part: "Table"
    claims: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Registry:
    """The measures that there are, vitscope's and a user's own."""

    own: Mapping[str, OwnMeasure] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the names of all measures, which their tables have too."""
        return (*_places(), *self.own)

    def module(self, measure: str, part: str) -> str:
        """Return the name of a module of a measure."""
        if measure in self.own:
            return f"vitscope.measures.own.{part}"
        if measure not in _places():
            raise VitscopeError(f"There is no measure '{measure}'.{nearest(measure, self.names())}")
        file = path(measure, f"{part}.py")
        return f"vitscope.measures.{file.parent.name}.{file.stem}"

    def figure_module(self, kind: FigureKind) -> str:
        """Return the module that draws a kind of figure."""
        if kind.drawn_by:
            return f"vitscope.drawing.{kind.drawn_by}"
        if kind.measure in self.own:
            return self.module(kind.measure, "figure")
        return f"vitscope.measures.{_places()[kind.measure][0]}.figure"

    def has(self, measure: str, part: str) -> bool:
        """Tell whether a measure has a module of this name."""
        if measure in self.own:
            return part == "claims" and self.own[measure].claims is not None
        return path(measure, f"{part}.py").is_file()

    def declared(self, measure: str) -> Measure:
        """Return what a measure says of itself."""
        return self.own[measure].measure if measure in self.own else _declared(measure)

    def kinds(self) -> dict[str, FigureKind]:
        """Return the kinds of figures, by the names that studies give them, and who draws each."""
        return _kinds() | {
            kind: figure
            for own in self.own.values()
            for kind, figure in own.measure.figures.items()
        }

    def merging_module(self, measure: str) -> str | None:
        """Return the module whose `merge` merges the parts; None if they are put below each other.

        That is a shared one, if the measure names it, or else its own.
        """
        own = self.module(measure, "merge") if self.has(measure, "merge") else None
        return self.declared(measure).merge.module or own

    def claims_of(self, measure: str) -> "Mapping[str, Evidence]":
        """Return what is claimed of the kinds of figures of a measure, and who counts it."""
        if not self.has(measure, "claims"):
            return {}
        module = import_module(self.module(measure, "claims"))
        if measure in self.own:
            own = self.own[measure]
            return {measure: module.read_claims(own.claims, own.table.name)}
        found: Mapping[str, Evidence] = module.CLAIMS
        return found

    def table(self, measure: str) -> "Table":
        """Return the table of a measure."""
        if measure in self.own:
            return self.own[measure].table
        found: Table = self._columns(measure).TABLE
        return found

    def part_table(self, measure: str) -> "Table":
        """Return the table of its parts: the measure's own, unless it says another."""
        if measure in self.own:
            return self.own[measure].part
        columns = self._columns(measure)
        found: Table = getattr(columns, "PART", columns.TABLE)
        return found

    def columns_module(self, measure: str) -> str:
        """Return the module that has the columns: `table`, where the numerics use them, too."""
        return self.module(measure, "table" if self.has(measure, "table") else "measure")

    def _columns(self, measure: str) -> ModuleType:
        return import_module(self.columns_module(measure))

    def columns_of(self, measure: str) -> Given:
        """Return the name and the columns of the table of a measure, as plain values."""
        return asdict(self.table(measure))

    def part_columns_of(self, measure: str) -> Given:
        """Return the name and the columns of the table of its parts, as plain values."""
        return asdict(self.part_table(measure))


BUILT_IN = Registry()
names, module, has, declared = BUILT_IN.names, BUILT_IN.module, BUILT_IN.has, BUILT_IN.declared
kinds, merging_module, claims_of = BUILT_IN.kinds, BUILT_IN.merging_module, BUILT_IN.claims_of
table, part_table = BUILT_IN.table, BUILT_IN.part_table
columns_of, part_columns_of = BUILT_IN.columns_of, BUILT_IN.part_columns_of
figure_module, columns_module = BUILT_IN.figure_module, BUILT_IN.columns_module


def of(study: "Study") -> Registry:
    """Return the measures of vitscope, and a study's own."""
    return Registry(study.own_measures) if study.own_measures else BUILT_IN
