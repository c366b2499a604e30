"""Where the panels of a figure stand."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil
from typing import Any

import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.drawing.axes import ticks
from vitscope.drawing.legends import Legend
from vitscope.drawing.panels import Panels
from vitscope.errors import VitscopeError

# Inches: one panel fills a column, two the text width of the paper, three or four a full page.
_WIDTHS = {1: 3.25, 2: 5.5, 3: 7.0, 4: 7.0}
_ROW_HEIGHT = 1.8
_LEGEND_HEIGHT = 0.2
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
        axes.yaxis.set_major_locator(ticks())
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
    legend = Legend()
    return [
        Panels(figure, _first(grid[:, row], count), columns, legend=legend, titled=row == 0)
        for row in range(rows)
    ]


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
        used.yaxis.set_major_locator(ticks())
    return axes[:count]
