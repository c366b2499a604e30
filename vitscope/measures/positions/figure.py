"""Cosines and products of position embeddings, and biases for the offsets of positions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.looks import POSITION_COLORS, SIGNED_COLORS
from vitscope.drawing.panels import (
    LEAST_SQUARE,
    columns_of,
    make_square_panels,
    page_width,
    width_of,
)
from vitscope.files.arrays import Array

# Tiles along a side at most; of more positions, some are left out evenly.
_MOST = 14
# The gap between two tiles, as a share of their side.
_GAP = 0.12
# Numbers along a side at most.
_MOST_LABELS = 8
# Inches: what the colour bar of all panels takes of the width, or the bar of each and its labels;
# and what titles and labels take of the height.
_BAR_OF_ALL, _BAR_AND_LABELS, _TITLE_HEIGHT = 1.15, 0.95, 0.25


def shown(size: int) -> Array:
    """Return which of so many rows or columns have tiles."""
    return np.linspace(0, size - 1, min(size, _MOST)).round().astype(int)


def _draw_similarity(axes: Axes, points: pd.DataFrame) -> None:
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
        every = -(-len(numbers) // _MOST_LABELS)
        middles = np.arange(len(numbers))[::every] + (1 - _GAP) / 2
        axis.set_ticks(middles, [str(number) for number in numbers[::every]])
    axes.set(xlim=(0, len(columns) - _GAP), ylim=(len(rows) - _GAP, 0), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def plot_position_similarity(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a panel per model: a tile for each position, its cosine with every position."""
    panels = make_square_panels(len(members), _BAR_OF_ALL, _TITLE_HEIGHT)
    for panel in panels.of_models(members, table, ["row", "column"]):
        _draw_similarity(panel.axes, panel.rows)
    colors = ScalarMappable(Normalize(-1, 1), POSITION_COLORS)
    color_bar(panels.axes, colors, "Cosine similarity")
    return panels.finish("Column of the position", "Row of the position")


def plot_position_products(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a panel per model: all positions across and down, row by row; each has its own scale."""
    across = columns_of(len(members), LEAST_SQUARE)
    panels = make_square_panels(len(members), across * _BAR_AND_LABELS, _TITLE_HEIGHT)
    for panel in panels.of_models(members, table, ["row", "column"]):
        products = np.stack([np.asarray(each, np.float64) for each in panel.rows["products"]])
        largest = float(np.abs(products).max()) or 1.0
        scale = TwoSlopeNorm(0, -largest, largest)
        cells = panel.axes.imshow(products, cmap=SIGNED_COLORS, norm=scale, interpolation="nearest")
        panel.axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        options = {"shrink": 0.9, "ticks": MaxNLocator(4)}
        color_bar([panel.axes], cells, "Dot product", labelpad=4, **options)
    return panels.finish("Position, row by row", "Position, row by row")


# Inches: the side of a tile at most, the least height of a panel, what bars and labels take of the
# width, and a title and its labels of the height; the width of a bar, and the height of the label
# below all.
_TILE, _LEAST, _BAR_WIDTH, _TEXT_HEIGHT = 0.5, 0.9, 1.3, 0.5
_BAR, _LABEL_HEIGHT = 0.1, 0.15


def _heads(rows: pd.DataFrame) -> Array:
    """Return the heads of the rows of the table; those that share a bias are one, 0."""
    return rows["head"].fillna(0).to_numpy(int)


def _draw_biases(axes: Axes, rows: pd.DataFrame, scale: TwoSlopeNorm, width: int) -> None:
    heads = _heads(rows)
    for head, row in zip(heads, rows.to_dict("records"), strict=True):
        values = np.reshape(row["values"], (row["height"], row["width"]))
        edges = (row["layer"], row["layer"] + 1 - _GAP, head + 1 - _GAP, head)
        axes.imshow(values, cmap=SIGNED_COLORS, norm=scale, extent=edges, interpolation="nearest")
    layers = rows["layer"].max() + 1
    middle = (1 - _GAP) / 2
    axes.set_xticks(np.arange(layers) + middle, [str(number) for number in range(layers)])
    names = ["all"] if rows["head"].isna().all() else [str(n) for n in range(heads.max() + 1)]
    axes.set_yticks(np.arange(heads.max() + 1) + middle, names)
    # As wide as the widest panel, so that tiles are of one size.
    axes.set(xlim=(0, width - _GAP), ylim=(heads.max() + 1 - _GAP, 0), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def plot_position_bias(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a panel per model, one below the other: layers across, heads down, on one scale each."""
    rows = [rows_of(table, member.model, ["layer", "head"]) for member in members]
    layers = [int(each["layer"].max()) + 1 for each in rows]
    tile = min(_TILE, (page_width() - _BAR_WIDTH) / max(layers))
    heights = [max(_LEAST, tile * (_heads(each).max() + 1)) + _TEXT_HEIGHT for each in rows]
    width = max(width_of(1), tile * max(layers) + _BAR_WIDTH)
    figure = Figure(figsize=(width, sum(heights) + _LABEL_HEIGHT))
    grid = figure.subplots(len(members), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, each, member, height in zip(grid, rows, members, heights, strict=True):
        largest = float(each[["lowest", "highest"]].abs().to_numpy().max()) or 1.0
        scale = TwoSlopeNorm(0, -largest, largest)
        _draw_biases(axes, each, scale, max(layers))
        axes.set_title(member.label, loc="left")
        axes.set_ylabel("Head")
        colors = ScalarMappable(scale, SIGNED_COLORS)
        aspect = (height - _TEXT_HEIGHT) / _BAR
        options = {"aspect": aspect, "pad": 0.02, "ticks": MaxNLocator(5)}
        color_bar([axes], colors, "Bias of the logit", labelpad=4, **options)
    grid[-1].set_xlabel("Layer with a bias", loc="left")
    return figure
