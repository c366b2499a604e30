"""Shape against texture: what models go by where the two are cues of different classes."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import CUE_COLORS, GRAY, INTERVAL_WIDTH, REFERENCE, TICK, Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL

_BAR_HEIGHT = 0.7
_INCHES_PER_MODEL = 0.2
_INCHES_FOR_AXES = 0.75


def _rows_of(table: pd.DataFrame, model: str) -> tuple[pd.Series, pd.DataFrame]:
    """Return the row of all images of a model, and those of each class of the shape."""
    rows = rows_of(table, model)
    of_all = rows["class_name"] == "all"
    return rows[of_all].iloc[0], rows[~of_all]


def _draw_decisions(axes: Axes, whole: pd.Series, height: int) -> None:
    """Draw in one bar the shares of images classified by either cue and by neither."""
    shape, texture = whole["shape_accuracy"], whole["texture_accuracy"]
    start = 0.0
    for share, color in zip(
        (shape, texture, 1 - shape - texture), CUE_COLORS.values(), strict=True
    ):
        axes.barh(height, share, _BAR_HEIGHT, left=start, color=color, linewidth=0)
        start += share


def _draw_bias(
    axes: Axes, whole: pd.Series, classes: pd.DataFrame, height: int, look: Look
) -> None:
    """Draw the bias over all images with its interval, and behind it those of the shapes."""
    axes.plot(classes["shape_bias"], [height] * len(classes), color=look.color, **TICK)
    axes.hlines(
        height, whole["ci_low"], whole["ci_high"], color=look.color, linewidth=INTERVAL_WIDTH
    )
    axes.plot(whole["shape_bias"], height, linestyle="", **look.line, clip_on=False, zorder=3)


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a row per model: left what it goes by, right the share of shape in those decisions."""
    panels = layout.panels(2)
    panels.figure.set_figheight(_INCHES_FOR_AXES + _INCHES_PER_MODEL * len(members))
    decisions, bias = panels.axes
    bias.axvline(0.5, **REFERENCE)
    for height, member in enumerate(members):
        whole, classes = _rows_of(table, member.model)
        _draw_decisions(decisions, whole, height)
        _draw_bias(bias, whole, classes, height, look_of(member.family))
    decisions.set_yticks(range(len(members)), [member.label for member in members])
    bias.set_yticks([])
    for axes, label in ((decisions, "Share of images told by"), (bias, "Shape bias")):
        axes.set(xlim=(0, 1), ylim=(len(members) - 0.4, -0.6), xlabel=label)
        axes.tick_params(axis="y", length=0)
    for name, color in CUE_COLORS.items():
        panels.legend.add_shade(name, color, 1)
    all_images = {"color": GRAY, "marker": "o", "linewidth": INTERVAL_WIDTH}
    panels.legend.add_line(f"all images, {INTERVAL}", all_images)
    panels.legend.add_line("images of one shape", {"color": GRAY, **TICK})
    panels.legend.draw(panels.figure)
    return panels.figure
