"""Dot products of position embeddings with each other."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.rows import rows_of

_COLORS = "viridis"
# Inches: what a colour bar and the labels of a panel take of its width, and of its height.
_BAR_WIDTH, _TEXT_HEIGHT = 0.95, 0.25


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw a panel per model: all positions across and down, row by row; each has its own scale."""
    across = 2 if len(members) == 4 else min(len(members), 3)
    panels = layout.square_panels(len(members), across * _BAR_WIDTH, _TEXT_HEIGHT)
    for axes, member in zip(panels.axes, members, strict=True):
        points = rows_of("position_similarity", table, member.model, ["row", "column"])
        products = np.stack([np.asarray(each, np.float64) for each in points["products"]])
        cells = axes.imshow(products, cmap=_COLORS, interpolation="nearest")
        axes.set_title(member.label)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        bar = panels.figure.colorbar(cells, ax=axes, shrink=0.9, ticks=MaxNLocator(4))
        bar.set_label("Dot product", labelpad=4)
        layout.without_edges(bar)
    panels.label("Position, row by row", "Position, row by row")
    return panels.figure
