"""Relative position biases: a map of offsets for each head of each layer."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.looks import SIGNED_COLORS
from vitscope.files.arrays import Array

# Of the side of a tile, the gap between two.
_GAP = 0.12
# Inches: the side of a tile at most, the width of all, the least height of a panel, what bars and
# labels take of the width, and a title and its labels of the height; the width of a bar, and the
# height of the label below all.
_TILE, _WIDTH, _LEAST, _BAR_WIDTH, _TEXT_HEIGHT = 0.5, 7.0, 0.9, 1.3, 0.5
_BAR, _LABEL_HEIGHT = 0.1, 0.15


def _heads(rows: pd.DataFrame) -> Array:
    """Return the heads of the rows of the table; those that share a bias are one, 0."""
    return rows["head"].fillna(0).to_numpy(int)


def _draw(axes: Axes, rows: pd.DataFrame, scale: TwoSlopeNorm, width: int) -> None:
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
    tile = min(_TILE, (_WIDTH - _BAR_WIDTH) / max(layers))
    heights = [max(_LEAST, tile * (_heads(each).max() + 1)) + _TEXT_HEIGHT for each in rows]
    width = max(3.25, tile * max(layers) + _BAR_WIDTH)
    figure = Figure(figsize=(width, sum(heights) + _LABEL_HEIGHT))
    grid = figure.subplots(len(members), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, each, member, height in zip(grid, rows, members, heights, strict=True):
        largest = float(each[["lowest", "highest"]].abs().to_numpy().max()) or 1.0
        scale = TwoSlopeNorm(0, -largest, largest)
        _draw(axes, each, scale, max(layers))
        axes.set_title(member.label, loc="left")
        axes.set_ylabel("Head")
        colors = ScalarMappable(scale, SIGNED_COLORS)
        aspect = (height - _TEXT_HEIGHT) / _BAR
        options = {"aspect": aspect, "pad": 0.02, "ticks": MaxNLocator(5)}
        color_bar([axes], colors, "Bias of the logit", labelpad=4, **options)
    grid[-1].set_xlabel("Layer with a bias", loc="left")
    return figure
