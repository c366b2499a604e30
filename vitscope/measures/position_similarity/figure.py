"""Cosines of position embeddings, as a tile for each position, and their dot products."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import POSITION_COLORS
from vitscope.drawing.panels import make_square_panels
from vitscope.files.arrays import Array

# Tiles along a side at most; of more positions, some are left out evenly.
_MOST = 14
# Of the side of a tile, the gap between two.
_GAP = 0.12
# Numbers along a side at most.
_LABELS = 8
# Inches: what the colour bar of all panels takes of the width, or the bar of each and its labels;
# and what titles and labels take of the height.
_BAR_WIDTH, _BAR_AND_LABELS, _TEXT_HEIGHT = 1.15, 0.95, 0.25


def shown(size: int) -> Array:
    """Return which of so many rows or columns have tiles."""
    return np.linspace(0, size - 1, min(size, _MOST)).round().astype(int)


def _draw(axes: Axes, points: pd.DataFrame) -> None:
    height, width = (int(points[name].iloc[0]) for name in ("height", "width"))
    cosines = np.stack([np.asarray(each, np.float64) for each in points["cosines"]])
    tiles = cosines.reshape(height, width, height, width)
    rows, columns = shown(height), shown(width)
    for down, row in enumerate(rows):
        for right, column in enumerate(columns):
            # A tile is one wide, with its gap.
            edges = (right, right + 1 - _GAP, down + 1 - _GAP, down)
            axes.imshow(tiles[row, column], cmap=POSITION_COLORS, vmin=-1, vmax=1, extent=edges)
    for axis, numbers in ((axes.xaxis, columns), (axes.yaxis, rows)):
        every = -(-len(numbers) // _LABELS)
        middles = np.arange(len(numbers))[::every] + (1 - _GAP) / 2
        axis.set_ticks(middles, [str(number) for number in numbers[::every]])
    axes.set(xlim=(0, len(columns) - _GAP), ylim=(len(rows) - _GAP, 0), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def plot_position_similarity(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a panel per model: a tile for each position, its cosine with every position."""
    panels = make_square_panels(len(members), _BAR_WIDTH, _TEXT_HEIGHT)
    for panel in panels.of_models(members, table, ["row", "column"]):
        _draw(panel.axes, panel.rows)
    colors = ScalarMappable(Normalize(-1, 1), POSITION_COLORS)
    color_bar(panels.axes, colors, "Cosine similarity")
    return panels.finish("Column of the position", "Row of the position")


def plot_position_products(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a panel per model: all positions across and down, row by row; each has its own scale."""
    across = 2 if len(members) == 4 else min(len(members), 3)
    panels = make_square_panels(len(members), across * _BAR_AND_LABELS, _TEXT_HEIGHT)
    for panel in panels.of_models(members, table, ["row", "column"]):
        products = np.stack([np.asarray(each, np.float64) for each in panel.rows["products"]])
        cells = panel.axes.imshow(products, cmap=POSITION_COLORS, interpolation="nearest")
        panel.axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        options = {"shrink": 0.9, "ticks": MaxNLocator(4)}
        color_bar([panel.axes], cells, "Dot product", labelpad=4, **options)
    return panels.finish("Position, row by row", "Position, row by row")
