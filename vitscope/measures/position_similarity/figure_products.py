"""Dot products of position embeddings with each other."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing import layout
from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import POSITION_COLORS

# Inches: what a colour bar and the labels of a panel take of its width, and of its height.
_BAR_WIDTH, _TEXT_HEIGHT = 0.95, 0.25


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a panel per model: all positions across and down, row by row; each has its own scale."""
    across = 2 if len(members) == 4 else min(len(members), 3)
    panels = layout.square_panels(len(members), across * _BAR_WIDTH, _TEXT_HEIGHT)
    for panel in panels.of_models(members, table, ["row", "column"]):
        products = np.stack([np.asarray(each, np.float64) for each in panel.rows["products"]])
        cells = panel.axes.imshow(products, cmap=POSITION_COLORS, interpolation="nearest")
        panel.axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        options = {"shrink": 0.9, "ticks": MaxNLocator(4)}
        color_bar([panel.axes], cells, "Dot product", labelpad=4, **options)
    return panels.finish("Position, row by row", "Position, row by row")
