"""Distances of hidden attention by depth, and maps of it over images."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.drawing import pictures
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.charts import Chart, Curve, Rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.looks import CROSS, QUERY_COLORS, REFERENCE

_EQUAL = "taking equally from all that was passed"
plot_scan_distance = Chart(
    Rows(
        "Distance of hidden\nattention (pixels)",
        Curve("distance", "scans of a block"),
        Curve("uniform", _EQUAL, style=REFERENCE | {"zorder": 1, "clip_on": True}, interval=""),
        scale=begin_at_zero,
        scales="shared",
    ),
    bands=False,
)
# Maps reach full brightness at the value that this share of their positions exceeds.
_CLIP = 0.02
_SCALE = Normalize(0, 1)


def plot_scan_maps(table: pd.DataFrame, members: Members, *, shows: str) -> Figure:
    """Draw each image, and beside it the maps of queries; or its rollout, alone and over it."""
    table = table[table["shows"] == shows]
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    counts = [int(rows.groupby("image").size().max()) for rows in shown]
    shapes = [
        (rows["image"].nunique(), 1 + count + (shows == "rollout"))
        for rows, count in zip(shown, counts, strict=True)
    ]
    named = int(table["class_name"].notna().any())
    groups = pictures.groups_of_pictures(shapes, named, one_scale=True)
    titles = []
    for member, rows, grid in zip(members, shown, groups.grids, strict=True):
        for (_, maps), panels in zip(rows.groupby("image"), grid, strict=False):
            _draw_maps(maps, [*panels], groups.side)
        first = rows.iloc[0]
        inside = [] if pd.isna(first["name"]) else [first["name"]]
        of = [] if first["of"] == "query" else [first["of"]]
        titles.append(", ".join([member.label, *inside, *of]))
    groups.titles(titles)
    drawn = "Rollout" if shows == "rollout" else "Hidden attention"
    groups.bar(_SCALE, f"{drawn}, over its {100 - 100 * _CLIP:g} % quantile")
    return groups.figure


def _draw_maps(maps: pd.DataFrame, panels: list[Axes], side: float) -> None:
    pixels = pictures.read_picture(maps["picture"].iloc[0])
    pictures.draw_picture(panels[0], pixels)
    pictures.name_picture(panels[0], maps.iloc[0], side * 2, side * 2)
    for number, ((_, row), axes) in enumerate(zip(maps.iterrows(), panels[1:], strict=False)):
        values = np.asarray(row["weights"])
        top = np.quantile(values, 1 - _CLIP) or values.max() or 1
        drawn = np.minimum(values / top, 1), (row["height"], row["width"]), _SCALE, pixels.shape[:2]
        pictures.draw_map(axes, *drawn)
        if row["shows"] == "rollout":
            pictures.draw_map(panels[-1], *drawn, pixels)
        elif row["of"] == "query":
            color = QUERY_COLORS[number % len(QUERY_COLORS)]
            for each in (panels[0], axes):
                each.plot(row["column"] - 0.5, row["row"] - 0.5, color=color, **CROSS)
