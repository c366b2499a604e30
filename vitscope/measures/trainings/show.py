from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import begin_at_zero, in_percent
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import (
    CURVE,
    DASHED,
    END,
    END_OF_WARMUP,
    GRAY,
    GRID,
    HAIR,
    MOMENT,
    PLAIN,
    START,
    Look,
    looks_of,
    text_scale,
)
from vitscope.drawing.panels import LEAST_ALIKE, stack_panels, width_of

# Rows of panels from top to bottom: label, and columns of the table.
_ROWS = {
    "Loss": ("loss", "test_loss"),
    "Accuracy": ("training_accuracy", "test_accuracy"),
    "Learning rate": ("learning_rate",),
}
_HEIGHTS = (1, 1, 0.5)  # of these rows, as shares of the usual height


def plot_training(table: pd.DataFrame, members: Members) -> Figure:
    """Draw three panels per model: loss, accuracy and learning rate."""
    rows = stack_panels(len(members), len(_ROWS), LEAST_ALIKE, _HEIGHTS)
    for panels, (label, columns) in zip(rows, _ROWS.items(), strict=True):
        for panel in panels.of_models(members, table, ["epoch"]):
            points, axes = panel.rows, panel.axes
            for epoch in points.loc[points["snapshots"].notna(), "epoch"]:
                axes.axvline(epoch, **MOMENT, zorder=0)
            for column in columns:
                style = DASHED if column.startswith("test") else PLAIN
                axes.plot(points["epoch"], points[column], color=panel.look.color, **style)
            axes.set_xlim(0, points["epoch"].max())
            axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
            if label != "Loss":
                begin_at_zero(axes)
            if label == "Accuracy":
                in_percent(axes)
        if panels is not rows[-1]:
            panels.label("", label, "shared")
    legend = rows[-1].legend
    legend.add_line("training, on augmented images", {"color": GRAY, **PLAIN})
    legend.add_line("test", {"color": GRAY, **DASHED})
    legend.add_line("snapshot", MOMENT)
    return rows[-1].finish("Epoch", label, "shared")


# The height of the figure in inches, by the angle of the disk in degrees.
_FIGURE_HEIGHTS = {90: 3.4, 180: 2.3}
_RADII = {90: (0.25, 0.5, 0.75, 1.0), 180: (0.5, 1.0)}
# Markers darken and grow from the first moment to the last.
_PALEST = 0.85  # the share of white in the first marker
_SMALLEST = 0.8  # the size of the first marker, as a multiple of the usual size
_LARGEST = 1.3  # the size of the last marker, as a multiple of the usual size
_LABEL: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}


def _draw_training_trajectory(axes: PolarAxes, points: pd.DataFrame, look: Look) -> None:
    angle, radius = points["angle"], points["radius"]
    axes.plot(angle, radius, **look.stroke, linewidth=CURVE, clip_on=False)
    between = points.iloc[1:-1]
    time = between["order"].to_numpy() / points["order"].iloc[-1]
    size = look.line["markersize"] * (_SMALLEST + (_LARGEST - _SMALLEST) * time)
    color = np.array(to_rgb(look.color))
    axes.scatter(
        between["angle"],
        between["radius"],
        s=size**2,
        c=color + (1 - color) * (_PALEST * (1 - time))[:, None],
        marker=look.marker,
        edgecolors=look.color,
        linewidths=HAIR,
        clip_on=False,
        zorder=3,
    )
    warmup = points[points["ends_warmup"]]
    axes.plot(warmup["angle"], warmup["radius"], **END_OF_WARMUP, zorder=4)


def _fit_trajectory_disk(axes: PolarAxes, table: pd.DataFrame) -> int:
    """Reduce the disk to a quarter or a half, as the trajectories need; return its degrees."""
    degrees = 90 if table["angle"].max() <= np.pi / 2 else 180
    axes.set_thetamin(0)
    axes.set_thetamax(degrees)
    axes.set_thetagrids(range(0, degrees + 1, 30))
    farthest = max(1.0, table["radius"].max())
    axes.set_rmax(farthest)
    axes.set_rgrids(_RADII[degrees])
    below = -17 * text_scale()
    axes.annotate("Distance to the last weights", (0, farthest / 2), (0, below), **_LABEL)
    axes.annotate("Angle", (np.pi / 4, farthest), (9, 9), rotation=-45, **_LABEL)
    axes.grid(**GRID)
    axes.spines["polar"].set(**GRID)
    return degrees


def plot_trajectory(table: pd.DataFrame, members: Members) -> Figure:
    """Draw the trajectories of all models in one panel, from the first weights to the last."""
    shown = {member.model: rows_of(table, member.model, ["order"]) for member in members}
    figure = Figure(figsize=(width_of(1), _FIGURE_HEIGHTS[90]), layout="compressed")
    axes = cast(PolarAxes, figure.add_subplot(projection="polar"))
    legend = Legend()
    for member, look in zip(members, looks_of(members), strict=True):
        _draw_training_trajectory(axes, shown[member.model], look)
        # Give the legend full markers: in the panel, the fill of a marker shows the time.
        legend.add_line(member.label, replace(look, half_filled=False).curve)
    axes.plot(0, 1, **START, zorder=5)
    axes.plot(0, 0, **END, zorder=5)
    whole = pd.concat(shown.values())
    figure.set_figheight(_FIGURE_HEIGHTS[_fit_trajectory_disk(axes, whole)])
    legend.add_line("first weights", START)
    if whole["ends_warmup"].any():
        legend.add_line("end of warm-up", END_OF_WARMUP)
    legend.add_line("last weights", END)
    legend.draw(figure)
    return figure
