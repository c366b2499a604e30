"""Read the tables that the workflow made for a study, to look at them and draw from them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from vitscope.claims.doubts import ACCURACY_TABLES
from vitscope.claims.points import PublishedCurve, published_points_of_figure
from vitscope.drawing.figure import escaped_member
from vitscope.errors import VitscopeError, nearest
from vitscope.jobs import describing
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.package_data import PUBLISHED_POINTS
from vitscope.scopes.drawing import draw_kind_from_tables
from vitscope.scopes.tables import OTHERS, Tables
from vitscope.settings.keys import Figure as FigureEntry
from vitscope.settings.keys import Settings
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study
from vitscope.studies.resolving import resolve_moments, resolve_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECORD = "run.yaml"


class Made(Tables):
    """The tables that the workflow made for a study."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study = study
        self._folder = folder
        self.members = [
            escaped_member(describing.describe_member(study, name)) for name in study.models_of()
        ]

    def _whole_table(self, name: str) -> pd.DataFrame:
        """Return a table with the rows of all its models."""
        return self._table_of_subjects(name, [*self._files_of_table(name)])

    def available(self) -> list[str]:
        """Return the names of the tables that exist."""
        return [name for name in (*OTHERS, *registry.names()) if self._files_of_table(name)]

    def _accuracies(self) -> tuple[dict[str, pd.DataFrame], dict[str, int | None]]:
        there = {*self.available()} & {*ACCURACY_TABLES}
        classes = {name: self.study.dataset_of(name).classes for name in self.study.models_of()}
        return {name: self._whole_table(name) for name in there}, classes

    def figures(self) -> dict[str, str]:
        """Return the kind of each figure of the study, by the name of the figure."""
        return {name: figure.kind for name, figure in self.study.figures.items()}

    def plot(self, kind: str, ax: "Axes | None" = None, **options: Any) -> "Figure":
        """Draw a figure of the study by its name, or a kind of figure with all models of the study.

        Nothing is saved. A figure of a single panel is drawn in `ax`, if given. `options` are keys
        of the kind, such as `over=True` for `attention_heads`.
        """
        if kind not in self.study.figures:
            return super().plot(kind, ax, **options)
        figure = self.study.figures[kind]
        tables = {
            name: self._table_of_subjects(name, figure.subjects(name)) for name in figure.tables
        }
        known = {member.model: member for member in self.members}
        members = [known[name] for name in figure.models]
        moments = figure.shown_snapshots()
        options = figure.options | options
        return draw_kind_from_tables(
            figure.kind, tables, members, self._published_curves(figure), moments, ax, options
        )

    def _snapshots_of_kind(self, kind: str) -> list[str]:
        return []

    def _files_of_table(self, name: str) -> dict[str, Path]:
        """Return the files of a table by model or pair of models, in the order of the study."""
        if name == "predictions":
            files = self._folder.glob(f"{name}/*/{self.study.analysis.split}.parquet")
            found = {each.parent.name: each for each in files}
        else:
            found = {each.stem: each for each in self._folder.glob(f"{name}/*.parquet")}
        order = [model for model in self.study.models if model in found]
        return {each: found[each] for each in (*order, *sorted(found.keys() - {*order}))}

    def _table_of_subjects(self, name: str, subjects: Sequence[str]) -> pd.DataFrame:
        paths = self._files_of_table(name)
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

    def _published_curves(self, figure: FigureEntry) -> Mapping[str, PublishedCurve]:
        shown = None if figure.published is None else asdict(figure.published)
        columns = registry.of(self.study).kinds()[figure.kind].published
        return published_points_of_figure(shown, columns, map(str, PUBLISHED_POINTS.glob("*.csv")))


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
    try:
        # A program wrote the record: the checks for files that people write are not needed.
        settings: Settings = yaml.safe_load(record.read_text(encoding="utf-8"))["study"]
    except (OSError, ValueError, TypeError, LookupError, yaml.YAMLError) as error:
        raise VitscopeError(
            f"{record} is no record of a run: make it again, or give study=, the path of the "
            f"study's file."
        ) from error
    # Leave out figures of the user's own measures, whose files may have moved since.
    own, figures = settings.pop("measures", {}), settings["figures"].items()
    settings["figures"] = {name: each for name, each in figures if each["kind"] not in own}
    return Made(resolve_moments(resolve_study(settings.pop("name"), record, settings)), place)
