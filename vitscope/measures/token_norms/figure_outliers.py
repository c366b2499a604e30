"""Where outliers among the tokens lie in the image."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.rows import rows_of

# Inches: what the colour bar takes of the width, and what titles take of the height.
_BAR_WIDTH, _TEXT_HEIGHT = 0.6, 0.35
_COLORS = "inferno"


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw a map per model, at its cut point of the most outliers: how often a position has one."""
    panels = layout.square_panels(len(members), _BAR_WIDTH, _TEXT_HEIGHT)
    points = {
        member.model: rows_of("token_norms", table, member.model, ["index"]) for member in members
    }
    most = {model: rows.iloc[int(rows["outliers"].argmax())] for model, rows in points.items()}
    # One scale for all, which a network without outliers has, too.
    highest = max(0.01, *(max(row["positions"]) for row in most.values()))
    scale = Normalize(0, highest)
    for axes, member in zip(panels.axes, members, strict=True):
        row = most[member.model]
        shape = (row["height"], row["width"])
        axes.imshow(np.reshape(row["positions"], shape), cmap=_COLORS, norm=scale)
        axes.set_title(f"{member.label}\n{row['name']}: {100 * row['outliers']:.1f} % of tokens")
        axes.set(xticks=[], yticks=[])
    bar = panels.figure.colorbar(ScalarMappable(scale, _COLORS), ax=panels.axes)
    bar.set_label("Images with an outlier there")
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    layout.without_edges(bar)
    return panels.figure
