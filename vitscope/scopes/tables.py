"""Tables of networks, and the figures and the claims that are made from these tables."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from vitscope.claims.counting import count_by_recipe, count_claims, join_rows_of_figures
from vitscope.claims.doubts import ACCURACY_TABLES, doubt_claims
from vitscope.claims.intervals import without_resamples
from vitscope.claims.points import PublishedCurve, at_snapshots, published_points_of_figure
from vitscope.claims.report import findings_as_table
from vitscope.claims.tables import CLAIMS
from vitscope.drawing.figure import Member, escaped_member, rows_of
from vitscope.errors import VitscopeError, nearest
from vitscope.jobs import describing
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.measures.captions import title_of
from vitscope.package_data import PUBLISHED_POINTS, STYLE
from vitscope.settings.keys import Figure as FigureEntry
from vitscope.settings.keys import Settings
from vitscope.settings.snapshots import END
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study
from vitscope.studies.resolving import resolve_moments, resolve_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The resolution on a screen; files have the resolution of the style.
DOTS_PER_INCH = 150
# Tables that belong to no measure.
OTHERS = ("blocks", "predictions")
# The keys of a figure of a function of the user's own.
_OF_OWN = ["change", "together", "by_epoch"]


class Tables:
    """Tables of one or several networks, by name or as attributes: `scope.feature_variance`."""

    # Set by subclasses, which implement `_whole_table` and `available` too.
    members: Sequence[Member]

    def table(self, name: str, resamples: bool = False) -> pd.DataFrame:
        """Return a table by its name.

        With `resamples`, as the workflow has it: with the values in 400 resamples of the images.
        """
        whole = self._whole_table(name)
        return whole if resamples else without_resamples(whole)

    def _whole_table(self, name: str) -> pd.DataFrame:
        raise NotImplementedError

    def available(self) -> list[str]:
        """Return the names of the tables that exist or can be made."""
        raise NotImplementedError

    def own(self) -> dict[str, Any]:
        """Return the calls of the user's functions that have measured, by the function's name."""
        return {}

    def __getattr__(self, name: str) -> pd.DataFrame:
        # Copy, pickle, pandas and notebooks look for names with an underscore.
        if name.startswith("_") or "members" not in vars(self):
            raise AttributeError(name)
        if name not in (*registry.names(), *OTHERS, *self.own()):
            raise AttributeError(
                f"there is no table '{name}'; there are {', '.join(self.available())}."
                f"{nearest(name, self.available())}{registry.installed().left_out}"
            )
        return self.table(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.available()]

    def kinds(self) -> list[str]:
        """Return the kinds of figures that can be drawn."""
        there = set(self.available())
        trained = any(member.epoch is not None for member in self.members)
        found = [
            name
            for name, kind in registry.kinds().items()
            if there >= {*kind.tables} and (trained or not kind.by_epoch)
        ]
        return [*found, *self.own()]

    def plot(self, kind: str, ax: "Axes | None" = None, **options: Any) -> "Figure":
        """Draw a figure of a kind, as the workflow does, and save nothing.

        A figure of a single panel is drawn in `ax`, if given. `options` are keys of the kind, such
        as `over=True` for `attention_heads`.
        """
        known = _OF_OWN if kind in self.own() else [*_kind_of_figure(kind).option_keys]
        for name in options:
            if name not in known:
                raise VitscopeError(
                    f"Figures of the kind '{kind}' have no option '{name}', but "
                    f"{', '.join(known) or 'none'}.{nearest(name, known)}"
                )
        if kind in self.own():
            from vitscope.measures.own.show import plot_by_depth

            table = self._whole_table(kind)
            members = self._members_of_figure(options)
            plot_own = partial(plot_by_depth, table, members, label=kind, **options)
            return draw_styled(kind, ax, plot_own)
        return self._draw_members(kind, self._members_of_figure(options), ax, options)

    def _members_of_figure(self, options: Mapping[str, Any]) -> Sequence[Member]:
        """Return the networks that a figure shows; by epoch, those whose epoch is known."""
        if not options.get("by_epoch"):
            return self.members
        members = [member for member in self.members if member.epoch is not None]
        if not members:
            raise VitscopeError(
                "Of no network here is it known after how many epochs it was measured: "
                "vitscope.watch and figures by epoch of a study know it."
            )
        return members

    def overview(self) -> "Figure":
        """Draw a page of the first network: its blocks, what is measured by depth, and verdicts."""
        from vitscope.drawing.network_page import plot_network_page
        from vitscope.drawing.saving import style
        from vitscope.jobs.figures import KINDS_OF_PAGE, panels_of_page

        there, member = self.kinds(), self.members[0]
        kinds = [kind for kind in KINDS_OF_PAGE if kind in there]
        blocks, claims = self._whole_table("blocks"), self.counted(*kinds)
        draw = [
            partial(self._draw_members, kind, self.members[:1], options=keys)
            for kind, keys in panels_of_page(kinds)
        ]
        of_first = claims["model"] == member.model
        with style(STYLE):
            figure = plot_network_page(
                member.label,
                rows_of(blocks, member.model),
                draw,
                claims[of_first],
                self._what_is_read(),
            )
        figure.set_dpi(DOTS_PER_INCH)
        figure.set_label(f"What is measured of {member.model} by depth, and verdicts")
        _show_in_notebooks()
        return figure

    def _what_is_read(self) -> str | None:
        """Return how much of the first network is read; None if its tables do not say so."""
        return None

    def _draw_members(
        self, kind: str, members: Sequence[Member], ax: "Axes | None", options: Any = None
    ) -> "Figure":
        tables = {name: self._whole_table(name) for name in _kind_of_figure(kind).tables}
        return draw_kind_from_tables(
            kind, tables, members, {}, self._snapshots_of_kind(kind), ax, options or {}
        )

    def claims(self, *kinds: str) -> pd.DataFrame:
        """Return what the paper claims, what was measured, and whether the claim holds.

        Covers the given kinds of figures; by default, kinds that take a few passes of the images.
        """
        # Kinds that show one measure in several ways make the same claims.
        counted = self.counted(*kinds).drop_duplicates(["model", "versus", "claim"])
        labels = {member.model: member.label for member in self.members}
        return findings_as_table(counted, labels)

    def counted(self, *kinds: str) -> pd.DataFrame:
        """Return the claims of some kinds of figures as the workflow's table `claims`."""
        known = registry.kinds()
        # Unless kinds are given, take kinds that cost no more than a few passes of the images.
        rows = [
            self._claims_of_kind(kind)
            for kind in kinds or (kind for kind in self.kinds() if kind in known)
            if kinds or not registry.declared(known[kind].measure).need.of_training
        ]
        joined = join_rows_of_figures(CLAIMS, [each for each in rows if each is not None])
        return count_by_recipe(doubt_claims(joined, *self._accuracies()), {})

    def _accuracies(self) -> tuple[dict[str, pd.DataFrame], dict[str, int | None]]:
        """Return the table of accuracies, if images have labels, and how many classes there are."""
        if "classification" not in self.available():
            return {}, {}
        classes = self._whole_table("predictions")["label"].nunique()
        known = {"classification": self._whole_table("classification")}
        return known, {member.model: classes for member in self.members}

    def _claims_of_kind(self, kind: str) -> pd.DataFrame | None:
        if kind in self.own():
            return None
        evidence = registry.claims_of(_kind_of_figure(kind).measure).get(kind)
        if evidence is None:
            return None
        names = {evidence.table, "blocks"}
        tables = at_snapshots(
            {name: self._whole_table(name) for name in names}, self._snapshots_of_kind(kind)
        )
        models = [member.model for member in self.members]
        return count_claims(kind, evidence, tables, models, {}, {})

    def _snapshots_of_kind(self, kind: str) -> list[str]:
        return [END] if registry.kinds()[kind].snapshots else []

    def _picture_of_blocks(self, member: Member) -> str:
        from vitscope.drawing.network import plot_cut_points
        from vitscope.drawing.saving import style

        drawn = BytesIO()
        with style(STYLE):
            figure = plot_cut_points(
                rows_of(self._whole_table("blocks"), member.model), member.label
            )
            about = {"Date": None, "Title": f"Blocks of {member.label}, and their multiply-adds"}
            figure.savefig(drawn, format="svg", metadata=about)
        return drawn.getvalue().decode()

    def _repr_html_(self) -> str:
        """Show in a notebook where each network is read: a picture and a table of cut points."""
        columns = ["index", "name", "kind", "stage", "channels", "height", "width"]
        blocks = self._whole_table("blocks")
        parts = []
        for member in self.members:
            rows = rows_of(blocks, member.model)[[*columns, "parameters", "operations"]]
            parts += [
                f"<h4>{escape(member.label)}</h4>",
                self._picture_of_blocks(member),
                f"<details><summary>{len(rows)} cut points</summary>",
                rows.to_html(index=False),
                "</details>",
            ]
        names = ", ".join(self.available())
        return "".join([*parts, f"<p>Tables: {escape(names)}</p>"])

    def __repr__(self) -> str:
        labels = ", ".join(member.label for member in self.members)
        return f"<{type(self).__name__} of {labels}; tables: {', '.join(self.available())}>"


def draw_kind_from_tables(
    kind: str,
    tables: Mapping[str, pd.DataFrame],
    members: Sequence[Member],
    published: Mapping[str, PublishedCurve],
    snapshots: Sequence[str],
    ax: "Axes | None",
    options: Mapping[str, Any],
) -> "Figure":
    """Draw a figure of a kind from its tables, in the given axes or as a figure of its own."""
    from vitscope.drawing.from_tables import draw_from_tables

    shown = _kind_of_figure(kind)
    curves = published if shown.drawn_columns else None
    function, values = shown.draw, {**shown.values, **options}
    return draw_styled(
        kind, ax, partial(draw_from_tables, function, tables, members, curves, snapshots, values)
    )


def draw_styled(kind: str, ax: "Axes | None", plot: "Callable[[], Figure]") -> "Figure":
    """Call `plot` in the style of figures; it draws in `ax` or, without `ax`, in a new figure."""
    from vitscope.drawing.panels import drawing_in
    from vitscope.drawing.saving import style

    with style(STYLE), drawing_in(ax):
        figure = plot()
    if ax is None:
        figure.set_dpi(DOTS_PER_INCH)
        known = registry.kinds().get(kind)
        figure.set_label(title_of(known) if known else kind)
        _show_in_notebooks()
    elif figure is not ax.figure.figure:
        raise VitscopeError(
            f"A figure of the kind '{kind}' is laid out as a whole, and cannot be drawn in axes "
            f"that are given: leave ax out, and take the figure that is returned."
        )
    return figure


def _kind_of_figure(name: str) -> Any:
    if name not in registry.kinds():
        raise VitscopeError(
            f"There is no kind of figure '{name}'.{nearest(name, registry.kinds())} There are "
            f"{', '.join(sorted(registry.kinds()))}.{registry.installed().left_out}"
        )
    return registry.kinds()[name]


def _show_in_notebooks() -> None:
    """Register how notebooks render figures: pyplot, which would keep every figure, is not used."""
    from matplotlib.figure import Figure

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    pictures = shell.display_formatter.formatters["image/png"]
    if Figure not in pictures:
        pictures.for_type(Figure, _png_of_figure)


def _png_of_figure(figure: "Figure") -> tuple[bytes, dict[str, str]]:
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=figure.dpi, bbox_inches="tight")
    return drawn.getvalue(), {"alt": str(figure.get_label())}


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
