"""Shape against texture: what models go by where the two are cues of different classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend
from vitscope.drawing.looks import GRAY, Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL

# Unlike the colours of families, and of falling darkness.
_COLORS = {"shape": "#2f4858", "texture": "#e0b050", "neither": "#e8e8e8"}
_BAR_HEIGHT = 0.7
_CLASS_MARKER: dict[str, Any] = {
    "linestyle": "",
    "marker": "|",
    "markersize": 5,
    "markeredgewidth": 0.8,
    "alpha": 0.55,
}
_NO_BIAS: dict[str, Any] = {"color": "#7f7f7f", "linestyle": "--", "linewidth": 0.7}
_INTERVAL_WIDTH = 1.4
_INCHES_PER_MODEL = 0.2
_INCHES_FOR_AXES = 0.75


def _rows_of(table: pd.DataFrame, model: str) -> tuple[pd.Series, pd.DataFrame]:
    """Return the row of all images of a model, and those of each class of the shape."""
    rows = rows_of("shape_texture", table, model)
    of_all = rows["class_name"] == "all"
    return rows[of_all].iloc[0], rows[~of_all]


def _draw_decisions(axes: Axes, whole: pd.Series, height: int) -> None:
    """Draw in one bar the shares of images classified by either cue and by neither."""
    shape, texture = whole["shape_accuracy"], whole["texture_accuracy"]
    start = 0.0
    for share, color in zip((shape, texture, 1 - shape - texture), _COLORS.values(), strict=True):
        axes.barh(height, share, _BAR_HEIGHT, left=start, color=color, linewidth=0)
        start += share


def _draw_bias(
    axes: Axes, whole: pd.Series, classes: pd.DataFrame, height: int, look: Look
) -> None:
    """Draw the bias over all images with its interval, and behind it those of the shapes."""
    axes.plot(classes["shape_bias"], [height] * len(classes), color=look.color, **_CLASS_MARKER)
    axes.hlines(
        height, whole["ci_low"], whole["ci_high"], color=look.color, linewidth=_INTERVAL_WIDTH
    )
    axes.plot(whole["shape_bias"], height, linestyle="", **look.line, clip_on=False, zorder=3)


def _entries() -> dict[str, Any]:
    whole = Line2D([], [], color=GRAY, marker="o", linewidth=_INTERVAL_WIDTH)
    return {name: Patch(facecolor=color, lw=0) for name, color in _COLORS.items()} | {
        f"all images, {INTERVAL}": whole,
        "images of one shape": Line2D([], [], color=GRAY, **_CLASS_MARKER),
    }


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw a row per model: left what it goes by, right the share of shape in those decisions."""
    panels = layout.panels(2)
    panels.figure.set_figheight(_INCHES_FOR_AXES + _INCHES_PER_MODEL * len(members))
    decisions, bias = panels.axes
    bias.axvline(0.5, **_NO_BIAS)
    for height, member in enumerate(members):
        whole, classes = _rows_of(table, member.model)
        _draw_decisions(decisions, whole, height)
        _draw_bias(bias, whole, classes, height, look_of(member.family))
    decisions.set_yticks(range(len(members)), [member.label for member in members])
    bias.set_yticks([])
    for axes, label in ((decisions, "Share of images told by"), (bias, "Shape bias")):
        axes.set(xlim=(0, 1), ylim=(len(members) - 0.4, -0.6), xlabel=label)
        axes.tick_params(axis="y", length=0)
    legend(panels, _entries())
    return panels.figure
