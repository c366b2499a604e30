"""The measures of vitscope and of a study, found by name: nothing lists them.

A measure is a constant of `measure.py` in a folder beside this file, as `CKA = Measure(...)`. The
modules of the folder have what it does, by names: `measure_cka` measures, `merge_cka` merges parts,
`plot_{kind}`, a function or a chart, draws a kind of figure, and `CLAIMS_{KIND}` are its claims.
Names are searched in the text, so that a job imports what it works with and nothing else.

A study may have measures of its own besides, each in a file: `of(study)` knows both.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest
from vitscope.measures.legends import LEGENDS
from vitscope.measures.measure import FigureKind, Given, Measure

if TYPE_CHECKING:
    from vitscope.claims.claim import Evidence
    from vitscope.settings.study import Study


HERE = Path(__file__).parent
OWN = "vitscope.measures.own"
_MEASURE = re.compile(r"^(\w+) = Measure\(", re.MULTILINE)
_DEFINED = re.compile(r"^(?:def (\w+)\(|((?:\w+ = )+))", re.MULTILINE)


@cache
def _found() -> dict[str, str]:
    """Return the module that declares each measure."""
    found = {
        constant.lower(): f"vitscope.measures.{file.parent.name}.measure"
        for file in HERE.glob("*/measure.py")
        for constant in _MEASURE.findall(file.read_text(encoding="utf-8"))
    }
    return dict(sorted(found.items()))


def module(measure: str) -> str:
    """Return the module that declares a measure."""
    if measure not in _found():
        raise VitscopeError(f"There is no measure '{measure}'.{nearest(measure, _found())}")
    return _found()[measure]


def folder(measure: str) -> Path:
    """Return the folder of a measure."""
    return HERE / module(measure).split(".")[2]


@cache
def _defined(folder: Path) -> dict[str, str]:
    """Return what the modules of a folder define, each name as `module:name`."""
    return {
        name: f"vitscope.measures.{folder.name}.{file.stem}:{name}"
        for file in folder.glob("*.py")
        for function, constants in _DEFINED.findall(file.read_text(encoding="utf-8"))
        for name in ([function] if function else constants.split(" = ")[:-1])
    }


def _find(measure: str, name: str) -> str | None:
    return _defined(folder(measure)).get(name)


@cache
def _declared(measure: str) -> Measure:
    found: Measure = getattr(import_module(module(measure)), measure.upper())
    figures = {
        kind: replace(figure, measure=measure, name=kind) for kind, figure in found.figures.items()
    }
    return replace(found, name=measure, figures=figures)


@cache
def _kinds() -> dict[str, FigureKind]:
    return {kind: figure for name in _found() for kind, figure in _declared(name).figures.items()}


@dataclass(frozen=True)
class OwnMeasure:
    """Describes a user's own measure; `claims` says where to read its claims, if it has any."""

    measure: Measure
    claims: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Registry:
    """Lists all measures, vitscope's and a user's own.

    Functions are named as `module:name`, so that `pkgutil.resolve_name` can import them.
    """

    own: Mapping[str, OwnMeasure] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the names of all measures, which are also the names of their tables."""
        return (*_found(), *self.own)

    def declared(self, measure: str) -> Measure:
        """Return the declaration of a measure."""
        return self.own[measure].measure if measure in self.own else _declared(measure)

    def kinds(self) -> dict[str, FigureKind]:
        """Return the kinds of figures, by the names that studies give them."""
        return _kinds() | {
            kind: figure
            for own in self.own.values()
            for kind, figure in own.measure.figures.items()
        }

    def measuring(self, measure: str) -> str:
        """Return the function that takes a measure, or a part of it."""
        if measure in self.own:
            return f"{OWN}.compute:measure"
        return _required(measure, f"measure_{measure}")

    def merging(self, measure: str) -> str | None:
        """Return the function that merges parts; None if parts are stacked below each other.

        It is the shared function that the measure names, or else the measure's own.
        """
        shared = self.declared(measure).merge.function
        own = None if measure in self.own else _find(measure, f"merge_{measure}")
        return shared or own

    def drawing(self, kind: FigureKind) -> str:
        """Return the function or the chart that draws a kind of figure."""
        if kind.measure in self.own:
            return f"{OWN}.figure:{'plot_by_depth' if 'label' in kind.values else 'plot'}"
        return _required(kind.measure, f"plot_{kind.name}")

    def claiming(self, kind: FigureKind) -> str | None:
        """Return where the claims about a kind of figure are, or what reads them; None if none."""
        if kind.measure in self.own:
            return f"{OWN}.compute:read_claims" if self.own[kind.measure].claims else None
        return _find(kind.measure, f"CLAIMS_{kind.name.upper()}")

    def claims_of(self, measure: str) -> "Mapping[str, Evidence]":
        """Return the claims about a measure's kinds of figures, and how they are counted."""
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
        """Return the name and the columns of the table of its parts, as plain values."""
        return asdict(self.declared(measure).part_table)


def _required(measure: str, name: str) -> str:
    found = _find(measure, name)
    assert found, f"{folder(measure)} has no {name}"
    return found


BUILT_IN = Registry()
names, declared, kinds = BUILT_IN.names, BUILT_IN.declared, BUILT_IN.kinds
measuring, merging, drawing = BUILT_IN.measuring, BUILT_IN.merging, BUILT_IN.drawing
claiming, claims_of = BUILT_IN.claiming, BUILT_IN.claims_of
columns_of, part_columns_of = BUILT_IN.columns_of, BUILT_IN.part_columns_of


def of(study: "Study") -> Registry:
    """Return vitscope's measures and the study's own."""
    return Registry(study.own_measures) if study.own_measures else BUILT_IN


_TITLE = re.compile(r"\*\*(.+?)\.\*\*", re.DOTALL)
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_LEGEND = re.compile(r"\{(\w+)\}")
_LINK = re.compile(r"`([^`<]+?)\s+<([^`>]+)>`_")


def caption_of(kind: FigureKind) -> str:
    """Return what a figure of this kind shows, and how to read it, in reStructuredText."""
    if kind.text:
        return kind.text
    text = (folder(kind.measure) / kind.caption).read_text(encoding="utf-8")
    return _LEGEND.sub(lambda named: LEGENDS[named[1]], text)


def title_of(kind: FigureKind) -> str:
    """Return what a figure of this kind shows, in a few words: the beginning of its caption."""
    caption = caption_of(kind)
    title = _TITLE.match(caption)
    if title is None:
        raise VitscopeError(
            f"The caption {kind.measure}/{kind.caption} begins with '{caption[:20]}', allowed: a "
            f"title, as **Title.**"
        )
    return title[1]


def in_markdown(text: str) -> str:
    """Return a caption in Markdown.

    Captions have paragraphs, lists, emphasis, literals and links; Markdown writes only the last two
    differently.
    """
    return _LINK.sub(r"[\1](\2)", _LITERAL.sub(r"`\1`", text))
