from collections.abc import Sequence
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.drawing.axes import draw_points_with_intervals
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import INTERVAL
from vitscope.drawing.looks import GRAY, INTERVAL_WIDTH, REFERENCE
from vitscope.drawing.panels import make_row_panels
from vitscope.drawing.pictures import (
    draw_map,
    draw_picture,
    groups_of_pictures,
    letters_above,
    name_picture,
    read_picture,
)
from vitscope.measures.class_maps.measure import METHODS

_RANDOM = {"random": "random map"}
# All maps share a scale: each is divided by its largest value.
_SCALE = Normalize(0, 1)


def plot_class_maps(table: pd.DataFrame, members: Members) -> Figure:
    """Draw for each model a row for each image: the image, and the map of each method over it."""
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    rows = max(of_model["image"].nunique() for of_model in shown)
    methods = [method for method in METHODS if method in set(table["method"])]
    groups = groups_of_pictures([(rows, 1 + len(methods))] * len(members), 2, one_scale=True)
    heads = [fill(METHODS[method], letters_above(groups.side)) for method in methods]
    for of_model, grid in zip(shown, groups.grids, strict=True):
        unused = {*grid.ravel()}
        for (_, maps), line in zip(of_model.groupby("image"), grid, strict=False):
            titles = heads if line[0] is grid[0, 0] else []
            unused -= _draw_class_maps(maps, line, methods, groups.side, titles)
        for axes in unused:
            axes.remove()
    points = [of.loc[of["method"] == "grad_cam", "of"].iloc[0] for of in shown]
    groups.titles(
        [f"{member.label} (CAMs of {at})" for member, at in zip(members, points, strict=True)]
    )
    groups.bar(_SCALE, "Value of a map, over its largest value", over=True)
    return groups.figure


def _draw_class_maps(
    maps: pd.DataFrame,
    line: Sequence[Axes],
    methods: Sequence[str],
    side: float,
    titles: Sequence[str],
) -> set[Axes]:
    """Draw an image and, below `titles`, the map of each method over it; return panels used."""
    pixels = read_picture(maps["picture"].iloc[0])
    draw_picture(line[0], pixels)
    name_picture(line[0], maps.iloc[0], side if titles else 2 * side, 2 * side)
    for axes, title in zip(line[1:], titles, strict=False):
        axes.set_title(title, fontsize="small", pad=2)
    drawn = {line[0]}
    for _, row in maps.iterrows():
        axes = line[1 + methods.index(row["method"])]
        place = (row["height"], row["width"])
        draw_map(axes, row["values"], place, _SCALE, pixels.shape[:2], pixels)
        drawn.add(axes)
    return drawn


_AREA = ["area_low", "area", "area_high"]
_ROW = 0.19  # inches


def plot_faithfulness(table: pd.DataFrame, members: Members, *, change: str) -> Figure:
    """Draw a row for each method, and the area of random maps as a line, which others should beat.

    An area is the mean probability of the class over all shares of pixels, deleted or inserted.
    """
    rows = table[table["change"] == change].drop_duplicates(["model", "method"])
    methods = {
        name: each for name, each in (METHODS | _RANDOM).items() if name in {*rows["method"]}
    }
    panels = make_row_panels([*methods.values()], _ROW, count=len(members))
    for panel in panels.of_models(members, rows, ["method"]):
        of_method = 100 * panel.rows.set_index("method")[_AREA]
        for height, method in enumerate(methods):
            if method in of_method.index:
                line = panel.look.hollow if method in _RANDOM else panel.look.line
                draw_points_with_intervals(panel.axes, height, of_method.loc[method], line)
        for area in of_method["area"].filter(["random"]):
            panel.axes.axvline(area, **REFERENCE, zorder=0)
        panel.axes.set_xlim(0, 105 * rows["area_high"].fillna(rows["area"]).max())
    panels.legend.add_line(INTERVAL, {"color": GRAY, "linewidth": INTERVAL_WIDTH})
    panels.legend.add_line("random map", REFERENCE)
    return panels.finish(f"Mean probability of the class, pixels {change} (%)", "")
