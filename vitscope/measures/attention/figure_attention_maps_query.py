"""What chosen queries look at: maps of one head, with the queries marked in the image."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.looks import CROSS, QUERY_COLORS
from vitscope.drawing.overlays import draw_picture, groups_of_panels, read_picture
from vitscope.drawing.rows import rows_of
from vitscope.measures.attention.drawing_attention_maps import draw_weights, label, scale_of


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw for each model a row for each image: the image, and a map of each query."""
    queries = table[table["shows"] == "queries"]
    shown = [rows_of(queries, each.model, ["image"]) for each in members]
    images = max(rows["image"].nunique() for rows in shown)
    columns = 1 + max(rows.groupby("image").size().max() for rows in shown)
    groups = groups_of_panels(len(members), images, columns)
    scales = [scale_of(rows) for rows in shown]
    for rows, grid, scale in zip(shown, groups.grids, scales, strict=True):
        for (_, image), line in zip(rows.groupby("image", sort=False), grid, strict=False):
            _draw(image, line, scale, groups.side)
    label(groups, members, shown, scales, lambda row: f", head {row['head']}")
    return groups.figure


def _draw(queries: pd.DataFrame, line: npt.NDArray[Any], scale: Normalize, side: float) -> None:
    """Draw an image, and a map of each query in it."""
    pixels = read_picture(queries["picture"].iloc[0])
    draw_picture(line[0], pixels)
    for number, (_, query) in enumerate(queries.iterrows()):
        color, axes = QUERY_COLORS[number % len(QUERY_COLORS)], line[1 + number]
        draw_weights(axes, query, scale, pixels.shape[:2], side)
        for each in (line[0], axes):
            each.plot(query["query_column"] - 0.5, query["query_row"] - 0.5, color=color, **CROSS)
