"""A network as a row of cut points: the kind, the size and the multiply-adds of each."""

from math import ceil
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from vitscope.claims.points import subsamples
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.looks import GRAY, KIND_COLORS, KIND_EDGE, KIND_MARK, LABELS_OF_KINDS, THREAD
from vitscope.drawing.panels import page_width, width_of

_STEP = 0.16  # inches of the figure's width per cut point
_HEIGHT = 2.3  # inches, without the names of cut points
_BESIDE = 0.5  # inches beside the title
_LETTERS = 14  # of the title, per inch
_LETTER = 0.05  # inches of the figure's height per letter of the longest name
# Distances below the axes, in points.
_MARK_AT = 4.5  # to the middle of the mark of a kind
_NAMES_AT = 9  # to the beginning of names
# The minimum distance between names, in inches; among many cut points, only every nth is named.
_BETWEEN = 0.14


def plot_cut_points(blocks: pd.DataFrame, label: str) -> Figure:
    """Draw each cut point: its kind, stage, size, and multiply-adds since the cut point before."""
    points = blocks.sort_values("index").reset_index(drop=True)
    width = min(max(width_of(1), _STEP * len(points) + 1), page_width())
    height = _HEIGHT + _LETTER * points["name"].str.len().max()
    figure = Figure(figsize=(width, height))
    bars = figure.add_subplot()
    kinds = kinds_of(points)
    colors = [KIND_COLORS[kind] for kind in kinds]
    bars.bar(points.index, points["operations"] / 1e6, width=0.8, color=colors, **KIND_EDGE)
    bars.set_xlim(-0.6, len(points) - 0.4)
    # Offset the marks in points, so that names never cover them, whatever the height of the axes.
    below = offset_copy(bars.get_xaxis_transform(), figure, y=-_MARK_AT, units="points")
    for place, color in enumerate(colors):
        bars.plot(place, 0, **KIND_MARK, color=color, transform=below)
    begin_at_zero(bars)
    bars.set_ylabel("Multiply-adds of an image (millions)")
    every = ceil(_BETWEEN * len(points) / (width - 1))
    shown = points.iloc[::every]
    bars.set_xticks(shown.index, shown["name"], rotation=90, fontsize="small")
    bars.tick_params(axis="x", length=0, pad=_NAMES_AT)
    bars.set_xlabel("Cut point")
    bars.set_title(fill(label, int(_LETTERS * (width - _BESIDE))), pad=16)
    _mark_network_stages(bars, points)
    handles = [
        Patch(facecolor=KIND_COLORS[kind], **KIND_EDGE, label=label)
        for kind, label in LABELS_OF_KINDS.items()
        if kind in set(kinds)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def kinds_of(points: pd.DataFrame) -> list[str]:
    """Return each cut point's kind; "subsampling" if its block, unless an MSA, shrinks the map."""
    shrinks = subsamples(points) & (points["kind"] != "msa")
    return points["kind"].mask(shrinks, "subsampling").tolist()


def _mark_network_stages(bars: Axes, points: pd.DataFrame) -> None:
    """Write the size of the maps of each stage above the bars, and draw a line between stages."""
    for stage, members in points.groupby("stage", sort=False):
        first, last = members.index[[0, -1]]
        channels, height, width = members.loc[last, ["channels", "height", "width"]]
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
