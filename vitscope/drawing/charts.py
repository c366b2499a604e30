"""Charts: figures of curves by depth or another x value, declared as rows of panels and layers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.points import AllPublished, Points, bands
from vitscope.claims.statistics import certain_signs
from vitscope.drawing.changes import Bars, Change
from vitscope.drawing.epochs import SharesByEpoch, ValueByEpoch, plot_by_epoch
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import published_legend_label
from vitscope.drawing.looks import DOTTED, Look
from vitscope.drawing.panels import LEAST, LEAST_ALIKE, Panel, Scales, members_apart, stack_panels
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array

OPEN = "hollow: the sign of the change is open"
# Which rows to choose: maps a column to a value, or to a function from the column to a mask.
Where = Mapping[str, Any]


def _choose_rows(rows: pd.DataFrame, where: Where | None) -> pd.DataFrame:
    for column, value in (where or {}).items():
        rows = rows[value(rows[column]) if callable(value) else rows[column] == value]
    return rows


@dataclass(frozen=True)
class AlongX:
    """The x axis of a chart: `column` times `times`, a label and limits; `order` sorts rows."""

    column: str = "depth"
    label: str = "Normalized depth"
    times: int = 1
    limits: tuple[float, float] = (0, 1)
    order: tuple[str, ...] = ("index",)


@dataclass(frozen=True)
class Curve:
    """A curve of one column, over the rows that `where` chooses.

    `style` may be a function of the model's look. `in_legend` is the style of a legend entry that
    stands for all models. `interval` is the prefix of two columns, such as "ci" for "ci_low" and
    "ci_high"; it is empty if there is no interval. `change` says how a chart of changes shows the
    column.
    """

    column: str
    label: str = ""
    where: Where | None = None
    style: Mapping[str, Any] | Callable[[Look], Mapping[str, Any]] = lambda look: look.curve
    interval: str = "ci"
    times: int = 1
    at_least: float | None = None
    change: Change | None = None
    in_legend: Mapping[str, Any] | None = None

    def draw(self, panel: Panel, across: AlongX) -> None:
        points = _choose_rows(panel.rows, self.where)
        if points[self.column].isna().all():
            return
        style = self.style(panel.look) if callable(self.style) else self.style
        x, y = across.times * points[across.column], self.times * points[self.column]
        if self.interval and f"{self.interval}_low" in points:
            low, high = (self.times * points[f"{self.interval}_{end}"] for end in ("low", "high"))
            panel.draw_interval(x, low, high, style["color"])
        panel.draw_curve(x, y.clip(lower=self.at_least), **style)
        if self.label and callable(self.style) and not self.in_legend:
            panel.legend.add_marker(self.label, style, panel.look)
        elif self.label:
            panel.legend.add_line(self.label, self.in_legend or style)


@dataclass(frozen=True)
class Steps(Curve):
    """A curve with hollow marks after blocks whose change may have another sign on other images."""

    def draw(self, panel: Panel, across: AlongX) -> None:
        super().draw(panel, across)
        chosen = panel.rows[_open_changes(Points(panel.rows)[self.column])]
        if not chosen.empty:
            hollow = panel.look.hollow
            panel.draw_curve(chosen["depth"], chosen[self.column], **hollow, linestyle="")
            # Show a solid line, too: the marks of published values are hollow on a dotted line.
            panel.legend.add_line(OPEN, hollow, panel.look)


def _open_changes(values: Array) -> Array:
    """Return for each point whether resamples leave open the sign of the change before it."""
    found = np.zeros(values.shape[1], bool)
    changes = np.diff(values, axis=1)
    known = np.isfinite(changes).all(axis=0)
    if len(changes) > 1 and known.any():
        found[1:][known] = ~certain_signs(changes[:, known])
    return found


@dataclass(frozen=True)
class Shade:
    """A shade between two columns, in the colour of the model."""

    low: str
    high: str
    label: str
    alpha: float
    zorder: float = 1

    def draw(self, panel: Panel, across: AlongX) -> None:
        points, color = panel.rows, panel.look.color
        ends = points[self.low], points[self.high]
        look: dict[str, Any] = {"color": color, "alpha": self.alpha, "lw": 0}
        panel.axes.fill_between(points[across.column], *ends, **look, zorder=self.zorder)
        panel.legend.add_shade(self.label, color, self.alpha)


@dataclass(frozen=True)
class Level:
    """A horizontal line at a number, or at a column's first value, unless this is null."""

    at: str | float
    style: Mapping[str, Any]
    label: str = ""

    def draw(self, panel: Panel, across: AlongX) -> None:
        at = panel.rows[self.at].iloc[0] if isinstance(self.at, str) else self.at
        if pd.notna(at):
            panel.axes.axhline(at, **{"zorder": 1, **self.style})
            if self.label:
                panel.legend.add_line(self.label, self.style)


@dataclass(frozen=True)
class PublishedPoints:
    """Published points of a column.

    Points of another model, which can be compared by shape alone, have a panel of their own.
    `measured` names measured points in the legend. `at` returns the x values of the published
    points.
    """

    column: str
    measured: str = "measured"
    at: Callable[[pd.DataFrame, pd.DataFrame], pd.Series] = lambda theirs, rows: theirs["depth"]

    def draw(self, panel: Panel, across: AlongX) -> None:
        """Draw the published points, if any; name them and measured points in the legend."""
        if panel.theirs:
            points, look, style = panel.theirs.points, panel.look, panel.look.hollow | DOTTED
            x = self.at(points, panel.rows)
            panel.axes.plot(x, points[self.column], **style, clip_on=False, zorder=2.5)
            panel.legend.add_marker(self.measured, look.line, look)
            panel.legend.add_line(published_legend_label([panel.theirs]), style, look)


Layer = Curve | Shade | Level | PublishedPoints | Bars


class Rows:
    """A row of panels, one for each model, drawn from the table rows that `where` chooses.

    `table` is the index of the table among the tables that the chart is drawn from. `scale` is
    called with all axes after drawing, to set their scales. The last row of panels has the x label
    below it; `says_across` adds the label below this row, too. With `repeats`, published points are
    drawn as measured ones are, in panels of their own. What `grows` by orders of magnitude while a
    network learns is on a logarithmic scale by epoch.
    """

    def __init__(
        self,
        label: str,
        *layers: Layer,
        where: Where | None = None,
        table: int = 0,
        limits: tuple[float, float] | None = None,
        scale: Callable[..., object] | None = None,
        scales: Scales = "own",
        says_across: bool = False,
        repeats: bool = False,
        grows: bool = False,
    ) -> None:
        self.label, self.layers, self.where, self.table = label, layers, where, table
        self.limits, self.scale, self.scales = limits, scale, scales
        self.says_across, self.repeats, self.grows = says_across, repeats, grows

    @property
    def theirs(self) -> "tuple[Layer, ...]":
        """The layers that draw published points, in panels of their own."""
        theirs = tuple(layer for layer in self.layers if isinstance(layer, PublishedPoints))
        return self.layers if self.repeats else theirs


_BY_DEPTH = AlongX()


class Chart:
    """A figure of curves, in one row of panels or in several rows, one below the other.

    Depth bands lie between cut points: those that `bands_of` chooses from a panel's rows or, if
    `bands_from` is given, those of the panel's model in the table with this index.
    """

    def __init__(
        self,
        *rows: Rows,
        across: AlongX = _BY_DEPTH,
        bands: bool = True,
        bands_of: Where | None = None,
        bands_from: int | None = None,
    ) -> None:
        self.rows, self.across = rows, across
        self.bands, self.bands_of, self.bands_from = bands, bands_of, bands_from

    def __call__(
        self,
        *tables: pd.DataFrame,
        members: Members,
        published: AllPublished | None = None,
        together: bool = False,
        change: bool = False,
        by_epoch: bool = False,
    ) -> Figure:
        """Draw a panel for each model in each row, or with `together` one panel of all models.

        Where some models are trainings of one recipe, `together` makes a panel for each recipe.
        With `change`, draw the change of a value over each block in place of the value. With
        `by_epoch`, draw the value of models that are one network after several epochs.
        """
        if by_epoch:
            if change or together or published:
                raise VitscopeError(
                    "Figures by epoch show values alone: leave `change`, `together` and "
                    "`published` out of the figure, or `by_epoch`."
                )
            return self._plot_by_epoch(tables, members)
        if change and together:
            raise VitscopeError(
                "Bars of changes stand in panels of their models: leave `change` out of the "
                "figure, or `together`."
            )
        if change:
            return self.of_changes()(*tables, members=members, published=published)
        if together and published:
            raise VitscopeError(
                "Published curves stand in panels of their models: leave `published` out of the "
                "figure, or `together`."
            )
        curves = published or {}
        apart = members_apart(members, curves)
        if any(rows.repeats for rows in self.rows):
            apart = [member for member in members if member.model in curves]
        groups = _groups_together(members) if together else [[member] for member in members]
        # Several rows stay below each other while their panels can be narrow.
        narrow = len(self.rows) > 1 and all(rows.scales == "shared" for rows in self.rows)
        least = LEAST_ALIKE if narrow else LEAST
        stacked = stack_panels(len(groups) + len(apart), len(self.rows), least)
        for panels, rows in zip(stacked, self.rows, strict=True):
            table, order = _choose_rows(tables[rows.table], rows.where), self.across.order
            if together:
                panels.legend.add_models(members)
                shown = [*panels.of_groups(groups, table, order)]
            else:
                shown = [*panels.of_models(members, table, order, published)]
            beside = panels.of_published(apart, curves if rows.theirs else {}) if apart else ()
            self._draw_row(rows, shown, [*beside], tables, members)
            if rows is not self.rows[-1]:
                across = self.across.label if rows.says_across else ""
                panels.label(across, rows.label, rows.scales)
        return panels.finish(self.across.label, rows.label, rows.scales)

    def of_changes(self) -> "Chart":
        """Return a chart of the changes of its curves over each block."""
        shown = [
            Rows(
                layer.change.label,
                Bars(layer.column, layer.change),
                where={**(rows.where or {}), **(layer.where or {})},
                table=rows.table,
                scale=layer.change.scale,
                scales="shared",
                repeats=any(
                    isinstance(each, PublishedPoints) and each.column == layer.column
                    for each in rows.layers
                ),
            )
            for rows in self.rows
            for layer in rows.layers
            if isinstance(layer, Curve) and layer.change
        ]
        return Chart(*shown, across=self.across, bands=False)

    def _plot_by_epoch(self, tables: Sequence[pd.DataFrame], members: Members) -> Figure:
        """Draw one curve by epoch: that which says how changes are shown, if one does."""
        curves = [
            (rows, layer) for rows in self.rows for layer in rows.layers if isinstance(layer, Curve)
        ]
        rows, curve = next((each for each in curves if each[1].change), curves[0])
        change = curve.change or Change(f"Change of {rows.label[0].lower()}{rows.label[1:]}")
        table = _choose_rows(tables[rows.table], {**(rows.where or {}), **(curve.where or {})})
        shown = ValueByEpoch(rows.label, table, curve.column, rows.scales, rows.grows)
        return plot_by_epoch(shown, [SharesByEpoch(table, curve.column, change)], members)

    def _draw_row(
        self,
        rows: Rows,
        shown: Sequence[Panel],
        beside: Sequence[Panel],
        tables: Sequence[pd.DataFrame],
        members: Members,
    ) -> None:
        """Draw the depth bands, then the layers in front of them; then set the scales.

        The panels `beside` those of models are of published points.
        """
        if self.bands:
            points = [_choose_rows(panel.rows, self.bands_of) for panel in shown]
            if self.bands_from is not None:
                table = tables[self.bands_from]
                points = [rows_of(table, member.model, ["index"]) for member in members]
            _draw_chart_bands([*shown, *beside], [*points, *(panel.rows for panel in beside)])
        for layer in rows.layers:
            if not isinstance(layer, PublishedPoints):
                shown[0].legend.expect(layer.label)
        drawn = [(panel, rows.layers) for panel in shown]
        for panel, layers in [*drawn, *((panel, rows.theirs) for panel in beside)]:
            for layer in layers:
                layer.draw(panel, self.across)
            panel.axes.set_xlim(self.across.limits)
            if rows.limits:
                panel.axes.set_ylim(rows.limits)
        if rows.scale:
            rows.scale(*dict.fromkeys(each.axes for each in (*shown, *beside)))


def _groups_together(members: Members) -> list[list[Member]]:
    """Return the models of each panel: by recipe if one has several trainings, else all."""
    groups: dict[str, list[Member]] = {}
    for member in members:
        groups.setdefault(member.recipe or member.model, []).append(member)
    return [*groups.values()] if len(groups) < len(members) else [[*members]]


def _draw_chart_bands(shown: Sequence[Panel], cut_points: Sequence[pd.DataFrame]) -> None:
    """Draw the depth bands; in a shared panel, only if all models have the same bands."""
    of_axes: dict[Axes, list[tuple[Panel, pd.DataFrame]]] = {}
    for panel, points in zip(shown, cut_points, strict=True):
        of_axes.setdefault(panel.axes, []).append((panel, points))
    for (panel, points), *others in of_axes.values():
        if all(bands(each) == bands(points) for _, each in others):
            panel.draw_bands(points)
