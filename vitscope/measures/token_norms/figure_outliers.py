"""Where outliers among the tokens lie in the image."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vitscope.drawing import layout
from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import MAP_COLORS

# Inches: what the colour bar takes of the width, and what titles take of the height.
_BAR_WIDTH, _TEXT_HEIGHT = 0.6, 0.35


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a map per model, at its cut point of the most outliers: how often a position has one."""
    panels = layout.square_panels(len(members), _BAR_WIDTH, _TEXT_HEIGHT)
    # One scale for all, which a network without outliers has, too.
    scale = Normalize(0, 0.01)
    for panel, member in zip(panels.of_models(members, table), members, strict=True):
        row = panel.rows.iloc[int(panel.rows["outliers"].argmax())]
        positions = np.reshape(row["positions"], (row["height"], row["width"]))
        scale.vmax = max(scale.vmax or 0, positions.max())
        panel.axes.imshow(positions, cmap=MAP_COLORS, norm=scale)
        share = f"{100 * row['outliers']:.1f} % of tokens"
        panel.axes.set_title(f"{member.label}\n{row['name']}: {share}")
        panel.axes.set(xticks=[], yticks=[])
    colors = ScalarMappable(scale, MAP_COLORS)
    bar = color_bar(panels.axes, colors, "Images with an outlier there")
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    return panels.figure
