"""Find the measures of vitscope, of installed packages and of a study by name.

A measure is a constant in the `measure.py` of a folder beside this file: `CKA = Measure(...)`.
The modules of the folder define its functions: `measure_cka` measures, `merge_cka` merges parts,
`plot_{kind}`, a function or a chart, draws a kind of figure, and `CLAIMS_{KIND}` holds its claims.
These names are looked up in the text of the modules, so that a job imports only what it uses.

Installed packages may have such folders too. A study may have measures of its own, each in a file.
`of(study)` returns a registry of all of them.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest
from vitscope.measures.folders import (
    GROUP,
    Installed,
    measure_in_folder,
    measures_in,
    read_installed_folders,
)
from vitscope.measures.legends import LEGENDS
from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import schema_of_section

if TYPE_CHECKING:
    from vitscope.claims.claim import Evidence
    from vitscope.settings.study import Study

HERE = Path(__file__).parent
OWN = f"{GROUP}.own"
# The names of other folders and files in the results of a study, which no measure may have.
TAKEN = frozenset(
    {"augmented", "blocks", "buildups", "checkpoints", "claims", "agreement", "corrupted", "data"}
    | {"downloads", "latents", "predictions", "run", "snapshots", "tables", "training"}
)
_DEFINED = re.compile(r"^(?:def (\w+)\(|((?:\w+ = )+))", re.MULTILINE)


@cache
def _built_in_packages() -> dict[str, str]:
    """Map each measure of vitscope to its folder, as a module name."""
    files = HERE.glob("*/measure.py")
    found = {name: f"{GROUP}.{file.parent.name}" for file in files for name in measures_in(file)}
    return dict(sorted(found.items()))


def _names_taken_in_registry() -> set[str]:
    """Return the names that packages must not give to measures and kinds of figures."""
    measures = [measure_in_folder(package, name) for name, package in _built_in_packages().items()]
    kinds = {kind for measure in measures for kind in measure.figures}
    # Import by name: an import statement would make every job depend on the keys of a study.
    analysis = resolve_name("vitscope.settings.keys:Analysis")
    return {*_built_in_packages(), *kinds, *TAKEN, *schema_of_section(analysis)["properties"]}


@cache
def installed() -> Installed:
    return read_installed_folders(_names_taken_in_registry)


@cache
def _packages_by_measure() -> dict[str, str]:
    return _built_in_packages() | {**installed().packages}


def package(measure: str) -> str:
    if measure not in _packages_by_measure():
        raise VitscopeError(
            f"There is no measure '{measure}'.{nearest(measure, _packages_by_measure())}"
        )
    return _packages_by_measure()[measure]


def module(measure: str) -> str:
    """Return the module that declares a measure."""
    return f"{package(measure)}.measure"


@cache
def folder(measure: str) -> Path:
    spec = find_spec(module(measure))
    assert spec
    return Path(str(spec.origin)).parent


@cache
def _measure_definitions(package: str, folder: Path) -> dict[str, str]:
    """Map each name that the modules of a folder define to its `module:name`."""
    return {
        name: f"{package}.{file.stem}:{name}"
        for file in folder.glob("*.py")
        for function, constants in _DEFINED.findall(file.read_text(encoding="utf-8"))
        for name in ([function] if function else constants.split(" = ")[:-1])
    }


def _find_definition(measure: str, name: str) -> str | None:
    return _measure_definitions(package(measure), folder(measure)).get(name)


@cache
def _declared_measure(measure: str) -> Measure:
    return measure_in_folder(package(measure), measure)


@cache
def _kinds_of_shared_measures() -> dict[str, FigureKind]:
    return {
        kind: figure
        for name in _packages_by_measure()
        for kind, figure in _declared_measure(name).figures.items()
    }


@dataclass(frozen=True)
class OwnMeasure:
    """Describes a user's own measure.

    `claims` has the arguments that `read_claims` needs; it is None if the file has no claims.
    """

    measure: Measure
    claims: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Registry:
    """Lists all measures: those of vitscope, of installed packages, and a user's own.

    Methods name functions as `module:name`, for `pkgutil.resolve_name`.
    """

    own: Mapping[str, OwnMeasure] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the names of all measures, which are also the names of their tables."""
        return (*_packages_by_measure(), *self.own)

    def declared(self, measure: str) -> Measure:
        return self.own[measure].measure if measure in self.own else _declared_measure(measure)

    def kinds(self) -> dict[str, FigureKind]:
        """Return the kinds of figures, by their names in studies."""
        return _kinds_of_shared_measures() | {
            kind: figure
            for own in self.own.values()
            for kind, figure in own.measure.figures.items()
        }

    def measuring(self, measure: str) -> str:
        """Return the name of the function that measures, or measures a part."""
        if measure in self.own:
            return f"{OWN}.compute:measure"
        return _require_definition(measure, f"measure_{measure}")

    def merging(self, measure: str) -> str | None:
        """Return the name of the function that merges parts; None if parts are only stacked."""
        shared = self.declared(measure).merge.function
        own = None if measure in self.own else _find_definition(measure, f"merge_{measure}")
        return shared or own

    def drawing(self, kind: FigureKind) -> str:
        """Return the name of the function or chart that draws a kind of figure."""
        if kind.measure in self.own:
            return f"{OWN}.show:{'plot_by_depth' if 'label' in kind.values else 'plot'}"
        return _require_definition(kind.measure, f"plot_{kind.name}")

    def claiming(self, kind: FigureKind) -> str | None:
        """Return the name of the claims about a kind of figure; None if there are no claims.

        For a user's own measure, return the name of the function that reads the claims.
        """
        if kind.measure in self.own:
            return f"{OWN}.compute:read_claims" if self.own[kind.measure].claims else None
        return _find_definition(kind.measure, f"CLAIMS_{kind.name.upper()}")

    def claims_of(self, measure: str) -> "Mapping[str, Evidence]":
        """Return the claims about a measure and their evidence, by kind of figure."""
        found = {}
        for name, kind in self.declared(measure).figures.items():
            if claims := self.claiming(kind):
                found[name] = resolve_name(claims)
                if own := self.own.get(measure):
                    found[name] = found[name](own.claims, own.measure.table.name)
        return found

    def columns_of(self, measure: str) -> Given:
        """Return the name and the columns of the table of a measure, as plain values."""
        return asdict(self.declared(measure).table)

    def part_columns_of(self, measure: str) -> Given:
        """Return the name and the columns of the table of a measure's parts, as plain values."""
        return asdict(self.declared(measure).part_table)


def _require_definition(measure: str, name: str) -> str:
    if found := _find_definition(measure, name):
        return found
    raise VitscopeError(f"The measure '{measure}' has no {name} in {folder(measure)}: write it.")


SHARED = Registry()
names, declared, kinds = SHARED.names, SHARED.declared, SHARED.kinds
measuring, merging, drawing = SHARED.measuring, SHARED.merging, SHARED.drawing
claiming, claims_of = SHARED.claiming, SHARED.claims_of
columns_of, part_columns_of = SHARED.columns_of, SHARED.part_columns_of


def of(study: "Study") -> Registry:
    """Return a registry of the shared measures and of the study's own measures."""
    return Registry(study.own_measures) if study.own_measures else SHARED


_TITLE = re.compile(r"\*\*(.+?)\.\*\*", re.DOTALL)
# A sentence does not end at an abbreviation, as in Fig. 9 and Fig. D.1.
_ESCAPE = re.compile(r"\\(\W)")
_SENTENCE_ENDS = re.compile(r"(?<=\.) (?=[A-Z][\w-]*[ :,])")
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_LEGEND = re.compile(r"\{(\w+)\}")
_LINK = re.compile(r"`([^`<]+?)\s+<([^`>]+)>`_")


def caption_of(kind: FigureKind) -> str:
    """Return the caption of a kind of figure in reStructuredText, with shared legends inserted."""
    if kind.text:
        return kind.text
    file = folder(kind.measure) / kind.caption
    if not file.is_file():
        raise VitscopeError(f"There is no caption {file}: write it.")
    return _LEGEND.sub(lambda named: LEGENDS[named[1]], file.read_text(encoding="utf-8"))


def title_of(kind: FigureKind) -> str:
    """Return the title of a kind of figure: the words in bold at the beginning of its caption."""
    caption = caption_of(kind)
    title = _TITLE.match(caption)
    if title is None:
        raise VitscopeError(
            f"The caption {kind.measure}/{kind.caption} begins with '{caption[:20]}', allowed: a "
            f"title, as **Title.**"
        )
    return _ESCAPE.sub(r"\1", " ".join(title[1].split()))


def sentence_of(kind: FigureKind) -> str:
    """Return the first sentence after a caption's title, without markup; "" if there is none."""
    paragraph = _TITLE.sub("", caption_of(kind), count=1).strip().partition("\n\n")[0]
    text = " ".join(re.sub(r"(?<!\\)(?:``|\*)", "", paragraph).split())
    return _SENTENCE_ENDS.split(_ESCAPE.sub(r"\1", text))[0]


def in_markdown(text: str) -> str:
    """Convert a caption to Markdown; only literals and links are written differently."""
    return _LINK.sub(r"[\1](\2)", _LITERAL.sub(r"`\1`", text))
