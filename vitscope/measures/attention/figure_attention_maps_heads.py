"""Where every head of a block looks in an image."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.looks import CROSS
from vitscope.drawing.overlays import draw_picture, groups_of_panels, read_picture
from vitscope.drawing.rows import rows_of
from vitscope.measures.attention.drawing_attention_maps import draw_weights, label, scale_of

# So many heads stand side by side.
_BESIDE = 8


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw for each model and image the image, and a map of every head, in lines of some heads."""
    heads = table[table["shows"] == "heads"]
    shown = [rows_of(heads, each.model, ["image", "head"]) for each in members]
    images = max(rows["image"].nunique() for rows in shown)
    most = max(rows["head"].nunique() for rows in shown)
    lines = ceil(most / _BESIDE)
    columns = 1 + ceil(most / lines)
    groups = groups_of_panels(len(members), images * lines, columns)
    scales = [scale_of(rows) for rows in shown]
    for rows, grid, scale in zip(shown, groups.grids, scales, strict=True):
        unused = {*grid.ravel()}
        for number, (_, image) in enumerate(rows.groupby("image")):
            unused -= _draw(image, grid[number * lines :][:lines], scale, groups.side)
        for axes in unused:
            axes.remove()
    label(groups, members, shown, scales, lambda row: f" ({row['of']})")
    return groups.figure


def _draw(heads: pd.DataFrame, grid: npt.NDArray[Any], scale: Normalize, side: float) -> set[Axes]:
    """Draw an image and a map of each head of it; return the panels that were drawn in."""
    pixels = read_picture(heads["picture"].iloc[0])
    draw_picture(grid[0, 0], pixels)
    if (heads["of"] == "query").all():
        place = heads[["query_column", "query_row"]].iloc[0] - 0.5
        grid[0, 0].plot(*place, color="white", **CROSS)
    panels = grid[:, 1:].ravel()[: len(heads)]
    for (_, head), axes in zip(heads.iterrows(), panels, strict=True):
        draw_weights(axes, head, scale, pixels.shape[:2], side)
        axes.set_title(f"head {head['head']}", fontsize="small", pad=2)
    return {grid[0, 0], *panels}
