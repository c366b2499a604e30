from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.drawing.charts import AlongX, Chart, Curve, Rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.looks import METHOD_STYLES
from vitscope.drawing.overlays import (
    draw_map,
    draw_picture,
    groups_of_panels,
    name_picture,
    read_picture,
)
from vitscope.measures.class_maps.measure import METHODS

# All maps share a scale: each is divided by its largest value.
_SCALE = Normalize(0, 1)


def plot_class_maps(table: pd.DataFrame, members: Members) -> Figure:
    """Draw for each model a row for each image: the image, and the map of each method over it."""
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    rows = max(of_model["image"].nunique() for of_model in shown)
    methods = [method for method in METHODS if method in set(table["method"])]
    groups = groups_of_panels([(rows, 1 + len(methods))] * len(members), 2, one_scale=True)
    for of_model, grid in zip(shown, groups.grids, strict=True):
        unused = {*grid.ravel()}
        for (_, maps), line in zip(of_model.groupby("image"), grid, strict=False):
            unused -= _draw_class_maps(maps, line, methods, groups.side)
        for axes, method in zip(grid[0, 1:], methods, strict=True):
            axes.set_title(METHODS[method], fontsize="small", pad=2)
        for axes in unused:
            axes.remove()
    points = [of.loc[of["method"] == "grad_cam", "of"].iloc[0] for of in shown]
    groups.titles(
        [f"{member.label} (Grad-CAM of {at})" for member, at in zip(members, points, strict=True)]
    )
    groups.bar(_SCALE, "Value of a map, over its largest value", over=True)
    return groups.figure


def _draw_class_maps(
    maps: pd.DataFrame, line: Sequence[Axes], methods: Sequence[str], side: float
) -> set[Axes]:
    """Draw an image and the map of each method over it; return the panels used."""
    pixels = read_picture(maps["picture"].iloc[0])
    draw_picture(line[0], pixels)
    name_picture(line[0], maps.iloc[0], side)
    drawn = {line[0]}
    for _, row in maps.iterrows():
        axes = line[1 + methods.index(row["method"])]
        place = (row["height"], row["width"])
        draw_map(axes, row["values"], place, _SCALE, pixels.shape[:2], pixels)
        drawn.add(axes)
    return drawn


def _faithfulness_chart(change: str) -> Chart:
    """Return a chart of the class probability by the share of pixels that are changed."""
    names = {**METHODS, "random": "random map"}
    curves = (
        Curve("probability", names[method], {"method": method}, style, times=100)
        for method, style in METHOD_STYLES.items()
    )
    rows = Rows("Probability of the class (%)", *curves, where={"change": change}, limits=(0, 100))
    across = AlongX("share", f"Pixels {change} (%)", 100, (0, 100), ("share",))
    return Chart(rows, across=across, bands=False)


plot_deletion = _faithfulness_chart("deleted")
plot_insertion = _faithfulness_chart("inserted")
