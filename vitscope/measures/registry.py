"""Find the measures of vitscope, of installed packages and of a study by name.

A measure is a constant in the `measure.py` of a folder beside this file: `CKA = Measure(...)`. It
names what measures, merges, draws and claims as `module:name`, for `pkgutil.resolve_name`, so that
a job imports only what it uses.

Installed packages may have such folders too. A study may have measures of its own, each in a file.
`of(study)` returns a registry of all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest
from vitscope.measures.folders import (
    GROUP,
    Installed,
    measures_in_folder,
    read_installed_folders,
)
from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import schema_of_section

if TYPE_CHECKING:
    from vitscope.claims.claim import Evidence
    from vitscope.settings.study import Study

HERE = Path(__file__).parent
# The names of other folders and files in the results of a study, and of what jobs read beside
# tables: no measure may have one.
TAKEN = frozenset(
    {"augmented", "blocks", "buildups", "checkpoints", "claims", "agreement", "corrupted", "data"}
    | {"downloads", "latents", "passes", "predictions", "run", "snapshots", "tables", "training"}
    | {"cut_points", "published", "style"}
)


@cache
def _built_in_measures() -> dict[str, Measure]:
    found = dict[str, Measure]()
    for file in HERE.glob("*/measure.py"):
        found |= measures_in_folder(f"{GROUP}.{file.parent.name}")
    return dict(sorted(found.items()))


def _names_taken_in_registry() -> set[str]:
    """Return the names that packages must not give to measures and kinds of figures."""
    # Import by name: an import statement would make every job depend on the keys of a study.
    analysis = resolve_name("vitscope.settings.keys:Analysis")
    return {
        *_built_in_measures(),
        *_kinds_of(_built_in_measures().values()),
        *TAKEN,
        *schema_of_section(analysis)["properties"],
    }


@cache
def installed() -> Installed:
    return read_installed_folders(_names_taken_in_registry)


@cache
def _shared_measures() -> dict[str, Measure]:
    return _built_in_measures() | {**installed().measures}


def module(measure: str) -> str:
    """Return the module that declares a measure."""
    return f"{declared(measure).package}.measure"


def folder(measure: str) -> Path:
    return Path(str(import_module(module(measure)).__file__)).parent


def _kinds_of(measures: Iterable[Measure]) -> dict[str, FigureKind]:
    return {name: kind for measure in measures for name, kind in measure.figures.items()}


@cache
def _kinds_of_shared_measures() -> dict[str, FigureKind]:
    return _kinds_of(_shared_measures().values())


@dataclass(frozen=True)
class Registry:
    """Lists all measures: those of vitscope, of installed packages, and a user's own."""

    own: Mapping[str, Measure] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the names of all measures, which are also the names of their tables."""
        return (*_shared_measures(), *self.own)

    def declared(self, measure: str) -> Measure:
        known = self.own if measure in self.own else _shared_measures()
        if measure not in known:
            raise VitscopeError(f"There is no measure '{measure}'.{nearest(measure, known)}")
        return known[measure]

    def kinds(self) -> dict[str, FigureKind]:
        """Return the kinds of figures, by their names in studies."""
        return _kinds_of_shared_measures() | _kinds_of(self.own.values())

    def kind(self, name: str) -> FigureKind:
        """Return a kind of figure by its name; refuse one that there is not."""
        known = self.kinds()
        if name not in known:
            raise VitscopeError(
                f"There is no kind of figure '{name}'.{nearest(name, known)} There are "
                f"{', '.join(sorted(known))}.{installed().left_out}"
            )
        return known[name]

    def claims_of(self, measure: str) -> "Mapping[str, Evidence]":
        """Return the claims about a measure and their evidence, by kind of figure."""
        found = {}
        for name, kind in self.declared(measure).figures.items():
            if kind.claims:
                claims = resolve_name(kind.claims)
                found[name] = claims(**kind.claims_from) if kind.claims_from else claims
        return found

    def columns_of(self, measure: str) -> Given:
        """Return the name and the columns of the table of a measure, as plain values."""
        return asdict(self.declared(measure).table)

    def part_columns_of(self, measure: str) -> Given:
        """Return the name and the columns of the table of a measure's parts, as plain values."""
        return asdict(self.declared(measure).part_table)


SHARED = Registry()
names, declared = SHARED.names, SHARED.declared
kinds, kind = SHARED.kinds, SHARED.kind
claims_of = SHARED.claims_of
columns_of, part_columns_of = SHARED.columns_of, SHARED.part_columns_of


def of(study: "Study") -> Registry:
    """Return a registry of the shared measures and of the study's own measures."""
    return Registry(study.own_measures) if study.own_measures else SHARED
