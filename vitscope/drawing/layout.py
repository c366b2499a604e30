"""Where things stand in a figure: panels, axes behind and above them, colour bars."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from vitscope.claims.published import Published
from vitscope.drawing.looks import GRAY, depth_colors
from vitscope.drawing.text import another_model
from vitscope.errors import VitscopeError

# Inches: one panel fills a column, two the text width of the paper, three or four a full page.
_WIDTHS = {1: 3.25, 2: 5.5, 3: 7.0, 4: 7.0}
_ROW_HEIGHT = 1.8
_LEGEND_HEIGHT = 0.2
# Of the width of a figure, what is left between its panels where they have axes behind them.
_SPACE_BEHIND = 0.04


@dataclass(frozen=True)
class Panels:
    """A figure and its axes, one for each model; those at an outer edge carry the labels.

    Axes that were removed from the figure keep their place. The figure is not `whole` where axes of
    another figure are drawn in.
    """

    figure: Figure
    axes: list[Axes]
    columns: int
    whole: bool = True

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
            if row not in labelled or (column and _has_axis_behind(self.axes[position - 1])):
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


_given: ContextVar[Axes | None] = ContextVar("axes that are drawn in", default=None)


@contextmanager
def drawing_in(axes: Axes | None) -> Iterator[None]:
    """Let the one panel of a figure be these axes, of a figure that is there; None makes a new one.

    The figure keeps its size and its layout.
    """
    token = _given.set(axes)
    try:
        yield
    finally:
        _given.reset(token)


def given_axes(count: int) -> Axes | None:
    """Return the axes that a figure of so many panels is to be drawn in, if any are given."""
    axes = _given.get()
    if axes is not None and count != 1:
        raise VitscopeError(
            f"This figure has {count} panels, and cannot be drawn in axes that are given: leave ax "
            f"out, and take the figure that is returned."
        )
    return axes


def panels(count: int) -> Panels:
    """Return a figure with `count` panels, at most three side by side."""
    axes = given_axes(count)
    if axes is not None:
        axes.yaxis.set_major_locator(_ticks())
        return Panels(axes.figure.figure, [axes], 1, whole=False)
    columns = 2 if count == 4 else min(count, 3)
    rows = ceil(count / columns)
    figure = Figure(figsize=(_WIDTHS[columns], rows * _ROW_HEIGHT + _LEGEND_HEIGHT))
    grid = figure.subplots(rows, columns, squeeze=False)
    return Panels(figure, _first(grid, count), columns)


def stacked_panels(count: int, rows: int) -> list[Panels]:
    """Return `rows` kinds of panels, one over the other, `count` of each in one figure.

    At most four stand side by side; further ones follow below, again all kinds of them.
    """
    if given_axes(count * rows):
        return [panels(1)]
    groups = ceil(count / 4)
    columns = ceil(count / groups)
    height = groups * rows * _ROW_HEIGHT + _LEGEND_HEIGHT
    figure = Figure(figsize=(_WIDTHS[columns], height))
    grid = figure.subplots(groups * rows, columns, squeeze=False).reshape(groups, rows, columns)
    return [Panels(figure, _first(grid[:, row], count), columns) for row in range(rows)]


def square_panels(count: int, bar_width: float, text_height: float, above: float = 0) -> Panels:
    """Return panels in a figure that is as high as squares need it.

    All in inches: what a colour bar takes of the width, and what text takes of the height, around
    each panel and above all of them.
    """
    square = panels(count)
    if not square.whole:
        return square
    side = (square.figure.get_figwidth() - bar_width) / square.columns
    height = ceil(count / square.columns) * (side + text_height) + _LEGEND_HEIGHT
    square.figure.set_figheight(height + above)
    square.figure.set_layout_engine("compressed")
    return square


def _first(grid: npt.NDArray[Any], count: int) -> list[Axes]:
    """Return the first axes of a grid, and remove the others from the figure."""
    axes: list[Axes] = grid.ravel().tolist()
    for unused in axes[count:]:
        unused.remove()
    for used in axes[:count]:
        used.yaxis.set_major_locator(_ticks())
    return axes[:count]


def depth_bar(figure: Figure, axes: Sequence[Axes]) -> None:
    """Put the scale of the colours of depth to the right of some panels."""
    colors = ScalarMappable(Normalize(0, 1), depth_colors())
    bar = figure.colorbar(colors, ax=list(axes), aspect=30, pad=0.02, ticks=np.linspace(0, 1, 6))
    bar.set_label("Normalized depth")
    bar.outline.set_linewidth(0.6)


def axis_behind(axes: Axes, label: str) -> Axes:
    """Return a second y axis, on the right and in gray, whose content lies behind that of `axes`.

    It is for values that share no scale with those of `axes`, and is apart from the next panel.
    """
    behind = axes.twinx()
    axes.set_zorder(behind.get_zorder() + 1)
    axes.patch.set_visible(False)
    behind.yaxis.set_major_locator(_ticks())
    behind.set_ylabel(label, color=GRAY)
    layout = behind.figure.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        layout.set(wspace=_SPACE_BEHIND)
    behind.tick_params(axis="y", colors=GRAY)
    behind.spines["right"].set(visible=True, color=GRAY)
    return behind


def axes_of_published(axes: Axes, label: str, *curves: Published | None) -> Axes:
    """Return where published curves are drawn: on an axis behind if any is of another model."""
    apart = another_model(curve for curve in curves if curve)
    return axis_behind(axes, f"Published {label}") if apart else axes


def share_scale(panels: Sequence[Axes]) -> None:
    """Give panels one scale, so that their curves compare."""
    boxes = [axes.dataLim for axes in panels if axes.lines]
    if boxes:
        low, high = min(box.y0 for box in boxes), max(box.y1 for box in boxes)
        room = 0.04 * (high - low) or 1
        for axes in panels:
            axes.set_ylim(low - room, high + room)


def share_zero(axes: Collection[Axes], room: Callable[[float], float]) -> None:
    """Let axes that lie over each other have their zeros at one height, near their tops.

    `room` says how much of an axis is above zero, by how far its values are; both in units of the
    lowest value.
    """
    lows = {each: min(each.dataLim.y0, 0) or -1 for each in axes}
    above = max(room(max(each.dataLim.y1, 0) / -low) for each, low in lows.items())
    for each, low in lows.items():
        each.set_ylim(1.06 * low, -above * low)


def without_edges(bar: Colorbar) -> None:
    """Draw a colour bar without an outline, and without the hairs that viewers show in it."""
    bar.outline.set_visible(False)
    for shade in bar.ax.findobj(QuadMesh):
        shade.set(edgecolor="face")


def _has_axis_behind(axes: Axes) -> bool:
    twins = axes.get_shared_x_axes().get_siblings(axes)
    return any(twin.yaxis.get_label_position() == "right" for twin in twins)


def axis_above(axes: Axes) -> Axes:
    """Return a second x axis, above and in gray, as `axis_behind` does on the right."""
    behind = axes.twiny()
    axes.set_zorder(behind.get_zorder() + 1)
    axes.patch.set_visible(False)
    behind.xaxis.label.set_color(GRAY)
    behind.tick_params(axis="x", colors=GRAY)
    behind.spines["top"].set(visible=True, color=GRAY)
    return behind


def _ticks() -> MaxNLocator:
    return MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=4)
