"""Accuracy by step of a build-up: Fig. 12a of the paper."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitscope.buildup.published import SERIES
from vitscope.buildup.rule import REJECTED
from vitscope.drawing import layout
from vitscope.drawing.legends import legend, markers
from vitscope.drawing.looks import GRAY, depth_color
from vitscope.drawing.text import INTERVAL

_BASELINE: dict[str, Any] = {"color": GRAY, "linestyle": (0, (4, 2)), "lw": 0.8}
_WAY: dict[str, Any] = {"color": GRAY, "lw": 1.0}
_INTERVAL: dict[str, Any] = {"color": GRAY, "lw": 0.7}
_MARKER: dict[str, Any] = {"marker": "o", "markersize": 4.2, "markeredgewidth": 0.9}
# Stages of a network; they have the colours of depths.
_STAGES = 4


def _color(stage: str) -> str:
    """Return the colour of a stage, `c1` to `c4`; gray for the baseline, which has none."""
    return depth_color((int(stage[1:]) - 1) / (_STAGES - 1)) if stage else GRAY


def _draw(axes: Axes, steps: pd.DataFrame, title: str) -> None:
    """Draw the steps from left to right, and join the steps that were kept."""
    percents, stages = 100 * steps["accuracy"], steps["stage"].fillna("")
    kept = steps["decision"] != REJECTED
    axes.axhline(percents.iloc[0], **_BASELINE, zorder=0)
    axes.plot(steps.index[kept], percents[kept], **_WAY, zorder=1)
    if "ci_low" in steps:
        low, high = 100 * steps["ci_low"], 100 * steps["ci_high"]
        axes.vlines(steps.index, low, high, **_INTERVAL, zorder=2)
    for step, stage, percent, good in zip(steps.index, stages, percents, kept, strict=True):
        color = _color(stage)
        face = color if good else "white"
        axes.plot(step, percent, **_MARKER, color=color, markerfacecolor=face, zorder=3)
    axes.set_title(title)
    msas = zip(stages, steps["msas"], strict=True)
    names = [f"{stage}: {count}" if stage else "0" for stage, count in msas]
    axes.set_xticks(steps.index, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.margins(x=0.06, y=0.1)


def plot(table: pd.DataFrame, label: str, published: pd.DataFrame | None = None) -> Figure:
    """Draw the steps of a build-up, and beside them the published steps."""
    panels = layout.panels(1 if published is None else 2)
    panels.resize(width=3.6 if published is None else 7.0, height=2.6)
    steps = table.sort_values("step", ignore_index=True)
    _draw(panels.axes[0], steps, f"from {label}, measured")
    if published is not None:
        _draw(panels.axes[1], published, f"published: {SERIES}")
    for axes in panels.axes:
        axes.set(xlabel="Stage that got an MSA: MSAs in all", ylabel="Accuracy (%)")
    colors = [_color(f"c{stage}") for stage in range(1, _STAGES + 1)]
    filled = [{**_MARKER, "color": color} for color in colors]
    legend(
        panels,
        {
            "kept": markers(filled),
            "rejected": markers([{**style, "markerfacecolor": "white"} for style in filled]),
            "baseline": Line2D([], [], marker="o", **_BASELINE),
            INTERVAL: Line2D([], [], linestyle="", marker="|", markersize=8, color=GRAY, mew=0.7),
        },
    )
    return panels.figure
