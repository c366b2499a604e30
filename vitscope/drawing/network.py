"""A network as the row of its cut points: what each is, how large, and what it computes."""

from itertools import groupby

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.looks import GRAY, KIND_COLORS, THREAD

# Inches: what one cut point takes, and all of them at least and at most.
_STEP, _LEAST, _MOST = 0.16, 3.25, 7.0
_HEIGHT = 3.0
# Of the height of the axes: where the mark of a kind begins, below them, and how high it is.
_MARK = (-0.075, 0.05)
# Of more cut points than this, only every second, third, ... has its name.
_NAMES = 44
_ORDER = ("stem", "conv", "msa", "mlp", "pool")


def plot(blocks: pd.DataFrame, label: str) -> Figure:
    """Draw the multiply-adds that lead to each cut point, its kind, its stage and its size."""
    points = blocks.sort_values("index").reset_index(drop=True)
    width = min(max(_LEAST, _STEP * len(points) + 1), _MOST)
    figure = Figure(figsize=(width, _HEIGHT))
    bars = figure.add_subplot()
    colors = [KIND_COLORS[kind] for kind in points["kind"]]
    bars.bar(points.index, points["operations"] / 1e6, width=0.8, color=colors, lw=0)
    bars.set_xlim(-0.6, len(points) - 0.4)
    bars.bar(
        points.index,
        _MARK[1],
        bottom=_MARK[0],
        width=0.8,
        color=colors,
        lw=0,
        transform=bars.get_xaxis_transform(),
        clip_on=False,
    )
    begin_at_zero(bars)
    bars.set_ylabel("Multiply-adds of an image (millions)")
    every = -(-len(points) // _NAMES)
    shown = points.iloc[::every]
    bars.set_xticks(shown.index, shown["name"], rotation=90, fontsize="x-small")
    bars.tick_params(axis="x", length=0, pad=9)
    bars.set_xlabel("Cut point")
    bars.set_title(label, pad=16)
    _mark_stages(bars, points)
    there = set(points["kind"])
    handles = [Patch(color=KIND_COLORS[kind], label=kind) for kind in _ORDER if kind in there]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _mark_stages(bars: Axes, points: pd.DataFrame) -> None:
    """Write above the bars how large the maps of each stage are, with a line between stages."""
    sizes = [tuple(row) for row in points[["stage", "channels", "height", "width"]].to_numpy()]
    first = 0
    for stage, group in groupby(sizes, key=lambda size: size[0]):
        members = list(group)
        _, channels, height, width = members[-1]
        last = first + len(members) - 1
        text = f"{channels}\n{height}×{width}" if stage or len(members) > 1 else ""
        bars.annotate(
            text,
            ((first + last) / 2, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            color=GRAY,
            fontsize="x-small",
        )
        if first:
            bars.axvline(first - 0.5, color=GRAY, lw=THREAD, ls=(0, (2, 2)))
        first = last + 1
