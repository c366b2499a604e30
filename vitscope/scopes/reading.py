"""Read what the workflow has made of a study, where it lies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from vitscope.claims.points import Published, read_published_of
from vitscope.drawing.figure import Member, literal
from vitscope.errors import VitscopeError, nearest
from vitscope.jobs import describing
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.package_data import PUBLISHED_POINTS
from vitscope.scopes.scope import OTHERS, Tables, drawn
from vitscope.settings.keys import Figure as FigureEntry
from vitscope.settings.keys import Settings
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study
from vitscope.studies.moments import add_moments
from vitscope.studies.resolving import build_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECORD = "run.yaml"


class Made(Tables):
    """The tables that the workflow made of a study."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study = study
        self._folder = folder
        self.members = [
            Member(**(describing.member(study, name) | {"label": literal(model.label)}))
            for name, model in study.models.items()
            if name in study.models_of()
        ]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table by its name, with the rows of all its models."""
        return self._of_subjects(name, [*self._paths(name)])

    def available(self) -> list[str]:
        """Return the names of the tables that exist."""
        return [name for name in (*OTHERS, *registry.names()) if self._paths(name)]

    def figures(self) -> dict[str, str]:
        """Return the figures of the study by their names, and the kind of each."""
        return {name: figure.kind for name, figure in self.study.figures.items()}

    def plot(self, kind: str, ax: "Axes | None" = None, **options: Any) -> "Figure":
        """Draw a figure of the study by its name, or a kind of figure with all models of the study.

        Nothing is saved. With `ax` it is drawn there, if it has a single panel. `options` are keys
        of the kind, as `over=True` for `attention_heads`.
        """
        if kind not in self.study.figures:
            return super().plot(kind, ax, **options)
        figure = self.study.figures[kind]
        tables = {name: self._of_subjects(name, figure.subjects(name)) for name in figure.tables}
        members = [
            next(member for member in self.members if member.model == name)
            for name in figure.models
        ]
        moments = figure.shown_snapshots()
        options = figure.options | options
        return drawn(figure.kind, tables, members, self._published(figure), moments, ax, options)

    def _paths(self, name: str) -> dict[str, Path]:
        """Return the files of a table by the models, or pairs of them, that they are of."""
        if name == "predictions":
            split = self.study.analysis.split
            found = {
                each.parent.name: each for each in self._folder.glob(f"{name}/*/{split}.parquet")
            }
        else:
            found = {each.stem: each for each in self._folder.glob(f"{name}/*.parquet")}
        order = [model for model in self.study.models if model in found]
        return {each: found[each] for each in (*order, *sorted(found.keys() - {*order}))}

    def _of_subjects(self, name: str, subjects: Sequence[str]) -> pd.DataFrame:
        """Return the rows of a table of some models, or pairs of them."""
        paths = self._paths(name)
        missing = [subject for subject in subjects if subject not in paths]
        if missing or not paths:
            raise VitscopeError(
                f"There is no table '{name}' of {', '.join(missing) or 'any model'} in "
                f"{self._folder}.{nearest(name, self.available())} There are "
                f"{', '.join(self.available()) or 'none'}."
            )
        tables = {each: find_table(name).read(paths[each]) for each in subjects}
        if name == "predictions":
            tables = {each: table.assign(model=each) for each, table in tables.items()}
        return pd.concat(tables.values(), ignore_index=True)

    def _published(self, figure: FigureEntry) -> Mapping[str, Published]:
        shown = None if figure.published is None else asdict(figure.published)
        columns = registry.of(self.study).kinds()[figure.kind].published
        return read_published_of(shown, columns, map(str, PUBLISHED_POINTS.glob("*.csv")))


def read(folder: Path | str, study: Path | str | None = None) -> Made:
    """Read the tables of a study that the workflow made, from `results/STUDY`.

    The study is read from the record of its run, or from the file `study`.
    """
    place = Path(folder)
    if not place.is_dir():
        raise VitscopeError(f"There is no folder {folder}: name results/STUDY of a run.")
    if study is not None:
        return Made(load_study(Path(study)), place)
    record = place / RECORD
    if not record.is_file():
        raise VitscopeError(
            f"There is no {RECORD} in {folder}, which says what the study is: make all of it, or "
            f"give study=, the path of its file."
        )
    settings = _without_own(_recorded(record))
    return Made(add_moments(build_study(settings.pop("name"), record, settings)), place)


def _without_own(settings: Settings) -> Settings:
    """Return settings without measures of the user's own, whose files may be elsewhere by now."""
    own = settings.pop("measures", {})
    shown = {name: each for name, each in settings["figures"].items() if each["kind"] not in own}
    return settings | {"figures": shown}


def _recorded(record: Path) -> Settings:
    """Return the study that the record of a run holds, word for word."""
    try:
        # Not as strictly as a study is read, which people write.
        settings: Settings = yaml.safe_load(record.read_text(encoding="utf-8"))["study"]
    except (OSError, ValueError, TypeError, LookupError, yaml.YAMLError) as error:
        raise VitscopeError(
            f"{record} is no record of a run: make it again, or give study=, the path of the "
            f"study's file."
        ) from error
    return settings
