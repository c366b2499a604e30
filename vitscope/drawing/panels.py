"""The panels of a figure, one for each model: their layout, titles, bands, legend and labels."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import ceil
from textwrap import fill
from typing import Any, Literal

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.points import PublishedCurve, bands
from vitscope.drawing.axes import mark_empty_axes, share_limits, tick_locator
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import GIVEN_AXES, Member, rows_of, with_variable
from vitscope.drawing.legends import INTERVAL, Legend
from vitscope.drawing.looks import BANDS, INTERVAL_ALPHA, Look, look_of, looks_of, text_scale
from vitscope.drawing.notes import add_to_note, raise_title_above_note
from vitscope.errors import VitscopeError

# Widths in inches.
_ONE = 3.25  # a figure of one panel
LEAST = 1.6  # the narrowest panel beside others
LEAST_SQUARE = 1.8  # the narrowest square panel beside others
LEAST_ALIKE = 1.05  # the same where panels of a row share their labels
_AROUND_TITLE = 1.1  # the labels left of a panel and the note right of its title
_BAR = 0.7  # a colour bar

# Letters per inch of the width of a panel and its labels.
_LETTERS = 13  # of a title or a label
_LETTERS_OF_TITLE = 13  # of a title with a note beside it

# Heights in inches.
_ROW_HEIGHT = 1.8
_LEGEND_HEIGHT = 0.2
_ROWS_AXES_HEIGHT = 0.75  # the x axis and the title of a panel with a row for each label
_HEIGHT_WITH_STRIP = 2.3

# Whether panels of one quantity share a scale or have their own.
Scales = Literal["shared", "own"]
_scales: ContextVar[Scales | None] = ContextVar("what is said of scales")


def page_width() -> float:
    """Return the width of a figure that fills the page, in inches; the style sets it."""
    return float(matplotlib.rcParams["figure.figsize"][0])


def width_of(count: int) -> float:
    return min(_ONE, page_width()) if count == 1 else page_width()


def columns_of(count: int, least: float = LEAST) -> int:
    """Return how many panels a row has: what fits on the page, with rows about equally long."""
    most = max(1, int(page_width() / least / text_scale()))
    return ceil(count / ceil(count / most))


@dataclass(frozen=True)
class Panel:
    """The panel of a model: axes, look, rows, and published points that are drawn over them."""

    axes: Axes
    look: Look
    legend: Legend
    rows: pd.DataFrame
    theirs: PublishedCurve | None = None

    def draw_bands(self, points: pd.DataFrame) -> None:
        """Shade the depth bands between the cut points of a model, behind everything else."""
        for band in bands(points):
            self.axes.axvspan(band.start, band.end, **BANDS[band.kind], zorder=0)
            self.legend.add_band(band.kind)
        self.axes.set_xlim(0, 1)

    def draw_interval(
        self, x: pd.Series, low: pd.Series, high: pd.Series, color: str | None = None
    ) -> None:
        """Shade the interval around a curve, if any point has one."""
        if low.notna().any():
            color = color or self.look.color
            self.axes.fill_between(x, low, high, color=color, alpha=INTERVAL_ALPHA, lw=0)
            self.legend.add_shade(INTERVAL, color, INTERVAL_ALPHA)

    def draw_curve(self, x: pd.Series, y: pd.Series, **style: Any) -> None:
        """Draw a curve in front, without clipping its markers at the edge of the panel."""
        self.axes.plot(x, y, **{"clip_on": False, "zorder": 3, **(style or self.look.line)})


@dataclass(frozen=True)
class Panels:
    """A figure and its axes, one for each model; axes at an outer edge carry the labels.

    The last axes may be for published points. The figure is not `whole` if the caller gave the
    axes; panels below others are not `titled`.
    """

    figure: Figure
    axes: list[Axes]
    columns: int
    whole: bool = True
    legend: Legend = field(default_factory=Legend)
    titled: bool = True
    _published: list[Axes] = field(default_factory=list)

    def of_models(
        self,
        members: Sequence[Member],
        table: pd.DataFrame,
        order: Sequence[str] = ("index",),
        published: Mapping[str, PublishedCurve] | None = None,
    ) -> Iterator[Panel]:
        """Yield the panel of each model, with its title and with its rows of the table."""
        for axes, member in zip(self.axes[: len(members)], members, strict=True):
            if self.titled:
                axes.set_title(self.in_lines(member.label))
            rows, look = rows_of(table, member.model, order), look_of(member)
            theirs = (published or {}).get(member.model)
            count_rows(rows, axes)
            over = theirs if theirs and theirs.same_model else None
            yield Panel(axes, look, self.legend, rows, over)

    def of_published(
        self, members: Sequence[Member], published: Mapping[str, PublishedCurve]
    ) -> Iterator[Panel]:
        """Yield one of the last panels for the published points of each model; drop the others."""
        for axes, member in zip(self.axes[len(self.axes) - len(members) :], members, strict=True):
            if theirs := published.get(member.model):
                same = "" if theirs.same_model else "\n(another model)"
                axes.set_title(self.in_lines(f"Published: {theirs.series}") + same)
                self._published.append(axes)
                yield Panel(axes, look_of(member), self.legend, theirs.points, theirs)
            else:
                axes.remove()

    def of_groups(
        self, groups: Sequence[Sequence[Member]], table: pd.DataFrame, order: Sequence[str]
    ) -> Iterator[Panel]:
        """Yield a panel of each group once for each of its models; looks tell all models apart."""
        members = [member for group in groups for member in group]
        looks = iter(looks_of(members))
        for axes, group in zip(self.axes, groups, strict=False):
            if self.titled and len(groups) > 1:
                axes.set_title(self.in_lines(group[0].label))
            for member, look in zip(group, looks, strict=False):
                rows = rows_of(table, member.model, order)
                count_rows(rows, axes)
                yield Panel(axes, look, self.legend, rows)

    def finish(self, x: str, y: str, scales: Scales | None = None) -> Figure:
        self.label(x, y, scales)
        if not self.whole:
            self.legend.draw(self.figure, inside=self.axes[0])
        elif len(self.axes) % self.columns:
            # The first free place is below `above`, and to the right of `left`.
            above, left = self.axes[-self.columns], self.axes[-1]
            self.legend.draw(self.figure, free=(above, left))
        else:
            self.legend.draw(self.figure)
        return self.figure

    def label(self, x: str, y: str, scales: Scales | None = None) -> None:
        """Label the x axis below each column and the y axis left of each row, and set scales.

        Call this after drawing, since it writes "no values" into empty panels. `scales` is the
        default for panels of one quantity; published points of another model have their own. A
        panel with another y label is of another quantity, and keeps the label and its scale.
        """
        for axes in self.axes:
            mark_empty_axes(axes)
        same = [axes for axes in self.axes if axes.get_ylabel() in ("", y)]
        shared = self._set_scales(_scales.get(None) or scales, same) if scales else []
        labelled = set()
        for position, axes in enumerate(self.axes):
            if axes not in self.figure.axes:
                continue
            below = self.axes[position + self.columns :: self.columns]
            if not {*below} & {*self.figure.axes}:
                axes.set_xlabel(self.in_lines(x))
            row = position // self.columns
            if row not in labelled and axes in same:
                axes.set_ylabel(y)
            elif axes in shared:
                axes.tick_params(axis="y", which="both", labelleft=False)
            if len(axes.get_yticks()):
                labelled.add(row)
        if self.whole:
            self.figure.align_ylabels()

    def _set_scales(self, scales: Scales, same: Sequence[Axes]) -> list[Axes]:
        """Set the scales of panels of the same quantity, and return those that share one."""
        there = [axes for axes in same if axes in self.figure.axes and len(axes.get_yticks())]
        shown = [axes for axes in there if np.isfinite(axes.dataLim.intervaly).all()]
        if scales == "shared":
            measured = [axes for axes in shown if axes not in self._published]
            share_limits(measured or shown)
        alike = {axes.get_ylim() for axes in shown}
        if len(alike) < 2:
            return shown
        apart = shown if scales == "own" else [axes for axes in shown if axes in self._published]
        self._say_own_scales(apart)
        return [axes for axes in shown if axes not in apart]

    def _say_own_scales(self, shown: Sequence[Axes]) -> None:
        """Write above each panel that it has its own scale; raise long titles above this note."""
        bars = [axes for axes in self.figure.axes if axes.get_label() == "<colorbar>"]
        wide = (self.figure.get_figwidth() - _BAR * bool(bars)) / self.columns
        room = wide / text_scale() - _AROUND_TITLE
        longest = max(len(line) for axes in shown for line in axes.get_title().split("\n"))
        for axes in shown:
            if longest > max(0, _LETTERS_OF_TITLE * room):
                raise_title_above_note(axes)
            add_to_note(axes, "own scale")

    def in_lines(self, text: str) -> str:
        """Wrap a title or a label to the width of a panel."""
        inches = self.figure.get_figwidth() / self.columns if self.whole else _ONE
        return fill(text, int(_LETTERS * inches / text_scale()), break_long_words=False)

    def add_note(self, note: str) -> None:
        if note:
            self.figure.suptitle(note)

    def resize(self, width: float | None = None, height: float | None = None) -> None:
        """Resize the figure, in inches, unless its axes belong to a figure that the caller gave."""
        if self.whole and width is not None:
            self.figure.set_figwidth(width)
        if self.whole and height is not None:
            self.figure.set_figheight(height)


def members_apart(
    members: Sequence[Member], published: Mapping[str, PublishedCurve]
) -> list[Member]:
    """Return the models whose published points are of another one, and need panels of their own."""
    return [
        each for each in members if (theirs := published.get(each.model)) and not theirs.same_model
    ]


def with_scales(scales: Scales | None) -> AbstractContextManager[None]:
    """Set whether panels of one quantity share a scale; None leaves it to each quantity."""
    return with_variable(_scales, scales)


def axes_given_for_panels(count: int) -> Axes | None:
    """Return the axes that the caller gave for a figure of `count` panels, or None."""
    axes = GIVEN_AXES.get()
    if axes is not None and count != 1:
        raise VitscopeError(
            f"This figure has {count} panels, and cannot be drawn in axes that are given: leave ax "
            f"out, and take the figure that is returned."
        )
    return axes


def make_panels(count: int, least: float = LEAST) -> Panels:
    """Return a figure with `count` panels, each at least `least` inches wide."""
    axes = axes_given_for_panels(count)
    if axes is not None:
        axes.yaxis.set_major_locator(tick_locator())
        return Panels(axes.figure.figure, [axes], 1, whole=False)
    return stack_panels(count, 1, least)[0]


def stack_panels(
    count: int, rows: int, least: float = LEAST, heights: Sequence[float] = ()
) -> list[Panels]:
    """Return `rows` rows of `count` panels; rows too wide for the page are split into groups.

    `heights` are those of the rows, as shares of the usual height.
    """
    if axes_given_for_panels(count * rows):
        return [make_panels(1)]
    columns = columns_of(count, least)
    groups = ceil(count / columns)
    shares = [*(heights or [1.0] * rows)] * groups
    height = sum(shares) * _ROW_HEIGHT * text_scale() + _LEGEND_HEIGHT
    figure = Figure(figsize=(width_of(count), height))
    grid = figure.subplots(len(shares), columns, squeeze=False, height_ratios=shares)
    grid = grid.reshape(groups, rows, columns)
    legend, stacked = Legend(), []
    for row in range(rows):
        used, unused = np.split(grid[:, row].ravel(), [count])
        for axes in unused:
            axes.remove()
        for axes in used:
            axes.yaxis.set_major_locator(tick_locator())
        stacked.append(Panels(figure, [*used], columns, legend=legend, titled=row == 0))
    return stacked


def make_panels_with_strips(count: int) -> tuple[Panels, Panels]:
    """Return `count` panels, and `count` flat strips, one below each panel."""
    diagrams = make_panels(count)
    figure, columns = diagrams.figure, diagrams.columns
    rows = ceil(count / columns)
    figure.set_figheight(rows * _HEIGHT_WITH_STRIP * text_scale() + _LEGEND_HEIGHT)
    grid = figure.add_gridspec(2 * rows, columns, height_ratios=(3, 1) * rows)
    below = []
    for position, axes in enumerate(diagrams.axes):
        row, column = divmod(position, columns)
        axes.set_subplotspec(grid[2 * row, column])
        axes.tick_params(labelbottom=False)
        below.append(figure.add_subplot(grid[2 * row + 1, column], sharex=axes))
    return diagrams, Panels(figure, below, columns, legend=diagrams.legend, titled=False)


def make_row_panels(
    labels: Sequence[str],
    row_height: float,
    above: float = 0,
    count: int = 2,
) -> Panels:
    """Return panels with a row for each label, from top to bottom; all sizes are in inches."""
    panels = make_panels(count)
    height = (_ROWS_AXES_HEIGHT + row_height * len(labels) + above) * text_scale()
    panels.resize(height=height * ceil(count / panels.columns))
    for position, axes in enumerate(panels.axes):
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0, labelleft=position % panels.columns == 0)
    return panels


def make_square_panels(
    count: int, bar_width: float, text_height: float, above: float = 0, least: float = LEAST_SQUARE
) -> Panels:
    """Return square panels in a figure as high as they and their texts need."""
    square = make_panels(count, least)
    if not square.whole:
        return square
    side = (square.figure.get_figwidth() - bar_width) / square.columns
    height = ceil(count / square.columns) * (side + text_height * text_scale()) + _LEGEND_HEIGHT
    square.figure.set_figheight(height + above)
    square.figure.set_layout_engine("compressed")
    return square
