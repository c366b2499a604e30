"""The panels of a figure, one for each model: titles, labels, bands, intervals, the legend."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.depth_bands import bands
from vitscope.claims.published import Published
from vitscope.drawing.axes import axes_of_published, has_axis_behind
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import (
    BAND_COLORS,
    BEHIND_CURVES,
    DOTTED,
    INTERVAL_ALPHA,
    Look,
    look_of,
    looks_of,
)
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL, published_label


@dataclass(frozen=True)
class Panel:
    """Where a model is drawn: its axes, its look, its rows of the table, and published points.

    What a panel draws by these functions is in the legend of its figure.
    """

    axes: Axes
    look: Look
    legend: Legend
    rows: pd.DataFrame
    theirs: Published | None = None

    def behind(self, label: str) -> Axes:
        """Return where published points are drawn: on an axis behind if of another model."""
        return axes_of_published(self.axes, label, self.theirs)

    def draw_bands(self, points: pd.DataFrame, behind: Axes | None = None) -> None:
        """Shade the depth bands between the cut points of a model, behind everything else."""
        for band in bands(points):
            axes = self.axes if behind is None else behind
            axes.axvspan(
                band.start, band.end, color=BAND_COLORS[band.kind], **BEHIND_CURVES, zorder=0
            )
            self.legend.add_band(band.kind, **BEHIND_CURVES)
        self.axes.set_xlim(0, 1)

    def draw_interval(
        self, x: pd.Series, low: pd.Series, high: pd.Series, color: str | None = None
    ) -> None:
        """Shade the interval around a curve, where there is one."""
        if low.notna().any():
            color = color or self.look.color
            self.axes.fill_between(x, low, high, color=color, alpha=INTERVAL_ALPHA, lw=0)
            self.legend.add_shade(INTERVAL, color, INTERVAL_ALPHA)

    def draw_curve(self, x: pd.Series, y: pd.Series, **style: Any) -> None:
        """Draw a curve in front, with markers that are whole at the edge of the panel, too."""
        self.axes.plot(x, y, **(style or self.look.line), clip_on=False, zorder=3)

    def draw_published(
        self, axes: Axes, theirs: Published, x: Any, y: Any, measured: str = "measured"
    ) -> None:
        """Draw published points in the axes for them; the legend tells them from measured ones."""
        axes.plot(x, y, **self.look.hollow, **DOTTED, clip_on=False, zorder=2.5)
        self.legend.add_marker(measured, self.look.line, self.look)
        self.legend.add_marker(published_label([theirs]), self.look.hollow, self.look)


@dataclass(frozen=True)
class Panels:
    """A figure and its axes, one for each model; those at an outer edge carry the labels.

    Axes that were removed from the figure keep their place. The figure is not `whole` where axes of
    another figure are drawn in. Panels that stand below others are not `titled`.
    """

    figure: Figure
    axes: list[Axes]
    columns: int
    whole: bool = True
    legend: Legend = field(default_factory=Legend)
    titled: bool = True

    def of_models(
        self,
        members: Sequence[Member],
        table: pd.DataFrame,
        order: Sequence[str] = ("index",),
        published: Mapping[str, Published] | None = None,
    ) -> Iterator[Panel]:
        """Yield the panel of each model, with its title and with its rows of the table."""
        for axes, member in zip(self.axes, members, strict=True):
            if self.titled:
                axes.set_title(member.label)
            rows, look = rows_of(table, member.model, order), look_of(member.family)
            theirs = (published or {}).get(member.model)
            yield Panel(axes, look, self.legend, rows, theirs)

    def of_models_together(
        self, members: Sequence[Member], table: pd.DataFrame, order: Sequence[str]
    ) -> Iterator[Panel]:
        """Yield the first panel for each model, in looks that tell models apart."""
        for member, look in zip(members, looks_of(members), strict=True):
            yield Panel(self.axes[0], look, self.legend, rows_of(table, member.model, order))

    def finish(self, x: str, y: str) -> Figure:
        """Label the axes and draw the legend; return the figure."""
        self.label(x, y)
        self.legend.draw(self.figure, None if self.whole else self.axes[0])
        return self.figure

    def label(self, x: str, y: str) -> None:
        """Label the x axis below each column and the y axis left of each row.

        A panel has a label of its own where another stands to the left, that of an axis behind.
        """
        labelled = set()
        for position, axes in enumerate(self.axes):
            if axes not in self.figure.axes:
                continue
            if position + self.columns >= len(self.axes):
                axes.set_xlabel(x)
            row, column = divmod(position, self.columns)
            if row not in labelled or (column and has_axis_behind(self.axes[position - 1])):
                axes.set_ylabel(y)
            labelled.add(row)
        if self.whole:
            self.figure.align_ylabels()

    def resize(self, width: float | None = None, height: float | None = None) -> None:
        """Give the figure another size, in inches, if it is no other's."""
        if self.whole and width is not None:
            self.figure.set_figwidth(width)
        if self.whole and height is not None:
            self.figure.set_figheight(height)
