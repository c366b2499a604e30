"""Effective receptive fields: a row of maps for each model, one for each cut point."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import percent

_COLORS = "inferno"
_LABEL = "log₁₀(1 + G), over its largest"
# The squares that are drawn, by their share of all contributions.
_SQUARES: dict[int, dict[str, Any]] = {
    50: {"color": "#56b4e9", "lw": 0.9, "linestyle": "-"},
    99: {"color": "#ffffff", "lw": 0.9, "linestyle": (0, (2.5, 1.5))},
}
# Inches: what the colour bar and the names of models take of the width, what the titles of a map
# take of the height, and the largest side of a map.
_AROUND, _TEXT_HEIGHT, _LEGEND_HEIGHT, _LARGEST = 1.35, 0.32, 0.25, 1.6


def _draw(axes: Axes, row: pd.Series) -> None:
    width = row["image_width"]
    shown = np.log10(1 + np.reshape(row["contributions"], (-1, width)))
    height = len(shown)
    axes.imshow(shown / (shown.max() or 1), cmap=_COLORS, vmin=0, vmax=1)
    for share, look in _SQUARES.items():
        side = row[f"side_{share}"]
        if pd.notna(side):
            # Pixels have their middle at whole numbers.
            corner = width // 2 - side / 2, height // 2 - side / 2
            axes.add_patch(Rectangle(corner, side, side, fill=False, **look))
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[], xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    where = "stem" if row["kind"] == "stem" else f"depth {row['depth']:.2f}"
    area = row["area_50"]
    axes.set_title(where if pd.isna(area) else f"{where}\n50 %: {percent(area, '.1f')}", fontsize=6)


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw a row of maps per model, in the order of depth, each scaled to its largest value."""
    points = [rows_of("receptive_field", table, member.model, ["index"]) for member in members]
    columns = max(map(len, points))
    width = min(7, columns * _LARGEST + _AROUND)
    side = (width - _AROUND) / columns
    height = len(members) * (side + _TEXT_HEIGHT) + _LEGEND_HEIGHT
    figure = Figure(figsize=(width, height), layout="compressed")
    grid = figure.subplots(len(members), columns, squeeze=False)
    for axes_of, rows, member in zip(grid, points, members, strict=True):
        for axes, row in zip(axes_of, rows.to_dict("records"), strict=False):
            _draw(axes, pd.Series(row))
        for unused in axes_of[len(rows) :]:
            unused.remove()
        axes_of[0].set_ylabel(member.label, fontsize=8)
    drawn = [axes for axes in grid.ravel() if axes in figure.axes]
    colors = ScalarMappable(Normalize(0, 1), _COLORS)
    # As high as three rows at most.
    high = min(3, len(members))
    shrink, aspect = high / len(members), 10 * high
    bar = figure.colorbar(colors, ax=drawn, label=_LABEL, shrink=shrink, aspect=aspect, pad=0.02)
    layout.without_edges(bar)
    entries = {f"{share} % of all contributions": _entry(look) for share, look in _SQUARES.items()}
    legend(layout.Panels(figure, drawn, columns), entries)
    return figure


def _entry(look: Mapping[str, Any]) -> Line2D:
    dark = {**look, "color": "#808080"} if look["color"] == "#ffffff" else look
    return Line2D([], [], **dark)
