from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vitscope.drawing.axes import color_bar
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import Legend, percent
from vitscope.drawing.looks import INNER_SQUARE, MAP_COLORS, OUTER_SQUARE, SHADOW, text_scale
from vitscope.drawing.panels import page_width

_LABEL = "Contribution G: log₁₀(1 + G) over its largest"
_HALF = 50
# Squares that hold 50 % and 99 % of all contributions.
_SQUARES = {_HALF: INNER_SQUARE, 99: OUTER_SQUARE}
_AROUND = 0.3  # inches: the width of the names of models
_TEXT_HEIGHT = 0.28  # inches: the height of a map's titles
_LEGEND_HEIGHT = 0.8  # inches: the height of the colour bar and the legend
_LARGEST = 0.9  # inches: the maximum side of a map
_LEAST = 0.6  # inches: the minimum side of a map


def _draw_contributions(axes: Axes, row: pd.Series) -> None:
    width = row["image_width"]
    shown = np.log10(1 + np.reshape(row["contributions"], (-1, width)))
    height = len(shown)
    axes.imshow(shown / (shown.max() or 1), cmap=MAP_COLORS, vmin=0, vmax=1)
    for share, look in _SQUARES.items():
        side = row[f"side_{share}"]
        if pd.notna(side):
            # The middle of a pixel has whole numbers as coordinates.
            corner = width // 2 - side / 2, height // 2 - side / 2
            axes.add_patch(Rectangle(corner, side, side, fill=False, **look))
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[], xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    where = "stem" if row["kind"] == "stem" else f"depth {row['depth']:.2f}"
    area = row["area_50"]
    axes.set_title(
        where if pd.isna(area) else f"{where}\nhalf in {percent(area, '.1f')}", fontsize="small"
    )


def plot_receptive_field(table: pd.DataFrame, members: Members) -> Figure:
    """Draw the maps of each model, in the order of depth, each scaled to its largest value."""
    points = [rows_of(table, member.model, ["index"]) for member in members]
    most = max(map(len, points))
    lines = ceil(text_scale() * _LEAST * most / (page_width() - _AROUND))
    columns = ceil(most / lines)
    width = min(page_width(), columns * _LARGEST * text_scale() + _AROUND)
    side = (width - _AROUND) / columns
    height = len(members) * lines * (side + _TEXT_HEIGHT * text_scale())
    height += _LEGEND_HEIGHT * text_scale()
    figure = Figure(figsize=(width, height), layout="compressed")
    grid = figure.subplots(len(members) * lines, columns, squeeze=False)
    parts = grid.reshape(len(members), -1)
    for axes_of, rows, member in zip(parts, points, members, strict=True):
        count_rows(rows, axes_of[0])
        for axes, row in zip(axes_of, rows.to_dict("records"), strict=False):
            _draw_contributions(axes, pd.Series(row))
        for unused in axes_of[len(rows) :]:
            unused.remove()
        axes_of[0].set_ylabel(member.label, fontsize="large")
    drawn = [axes for axes in grid.ravel() if axes in figure.axes]
    colors = ScalarMappable(Normalize(0, 1), MAP_COLORS)
    color_bar(drawn, colors, _LABEL, location="bottom", shrink=0.5, aspect=25, pad=0.02)
    legend = Legend()
    for share, look in _SQUARES.items():
        # A line that is white on a map is gray in the legend.
        color = SHADOW if look["color"] == "white" else look["color"]
        above = "; above a map, how much of the image it takes" if share == _HALF else ""
        legend.add_line(f"{share} % of all contributions{above}", {**look, "color": color})
    legend.draw(figure)
    return figure
