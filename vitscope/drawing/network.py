"""A network as a diagram: its stages, the kind of each block, and what each block costs."""

from math import ceil
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vitscope.claims.points import subsamples
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.legends import percent
from vitscope.drawing.looks import GRAY, KIND_COLORS, KIND_EDGE, LABELS_OF_KINDS, THREAD
from vitscope.drawing.panels import page_width, width_of

_STEP = 0.16  # inches of the figure's width per cut point
_HEIGHT = 2.6  # inches, without the names of cut points and further lines of the title
_BESIDE = 0.5  # inches beside the title
_LETTERS = 14  # of the title, per inch
_LETTER = 0.05  # inches of the figure's height per letter of the longest name
_LINE = 0.14  # the height of a line of the title in inches
_BLOCK = 0.2  # the height of a block, as a share of that of a panel
# The narrowest stage over which text stands, in inches.
_ROOM = 0.3
# The minimum distance between names, in inches; among many cut points, only every nth is named.
_BETWEEN = 0.14
_OVER_SIZES = 22  # points between blocks and the title
_COSTS = {"operations": "Multiply-adds\n(%)", "parameters": "Parameters\n(%)"}


def plot_cut_points(blocks: pd.DataFrame, label: str) -> Figure:
    """Draw the blocks by stage, in the colours of their kinds, and the costs of each in percent."""
    points = blocks.sort_values("index").reset_index(drop=True)
    width = min(max(width_of(1), _STEP * len(points) + 1), page_width())
    letters = int(_LETTERS * (width - _BESIDE))
    lines = [fill(each, letters) for each in (label, *say_costs(points))]
    title = "\n".join(lines)
    height = _HEIGHT + _LETTER * points["name"].str.len().max() + _LINE * title.count("\n")
    figure = Figure(figsize=(width, height))
    rows = (_BLOCK, *[1] * len(_COSTS))
    row, *panels = figure.subplots(len(rows), 1, sharex=True, height_ratios=rows)
    kinds = kinds_of(points)
    colors = [KIND_COLORS[kind] for kind in kinds]
    row.bar(points.index, 1, width=0.8, color=colors, **KIND_EDGE)
    row.set_axis_off()
    row.set_xlim(-0.6, len(points) - 0.4)
    row.set_ylim(0, 1)
    for axes, (cost, unit) in zip(panels, _COSTS.items(), strict=True):
        share = points[cost] / max(points[cost].sum(), 1)
        axes.bar(points.index, 100 * share, width=0.8, color=colors, **KIND_EDGE)
        begin_at_zero(axes)
        axes.set_ylabel(unit)
        axes.tick_params(axis="x", length=0, labelbottom=axes is panels[-1])
    every = ceil(_BETWEEN * len(points) / (width - 1))
    shown = points.iloc[::every]
    panels[-1].set_xticks(shown.index, shown["name"], rotation=90, fontsize="small")
    panels[-1].set_xlabel("Cut point")
    figure.align_ylabels(panels)
    row.set_title(title, pad=_OVER_SIZES)
    _write_network_stages([row, *panels], points, _ROOM * len(points) / (width - 1))
    handles = [
        Patch(facecolor=KIND_COLORS[kind], **KIND_EDGE, label=label)
        for kind, label in LABELS_OF_KINDS.items()
        if kind in set(kinds)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def say_costs(points: pd.DataFrame) -> tuple[str, str]:
    """Say what all blocks cost together, and how much of it is that of MSAs."""
    costs = points[[*_COSTS]].sum()
    text = f"{_short(costs['parameters'])} parameters, {_short(costs['operations'])} multiply-adds"
    attention = points[points["kind"] == "msa"]
    if attention.empty:
        return text, "no MSAs"
    shares = attention[[*_COSTS]].sum() / costs.clip(lower=1)
    parameters, operations = (percent(shares[cost]) for cost in ("parameters", "operations"))
    what = f"{parameters} of the parameters, {operations} of the multiply-adds"
    return text, f"MSAs, {len(attention)} of {len(points) - 1} blocks: {what}"


def _short(number: float) -> str:
    """Return a number with three digits and a unit."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f}"


def kinds_of(points: pd.DataFrame) -> list[str]:
    """Return each cut point's kind; "subsampling" if its block, unless an MSA, shrinks the map."""
    shrinks = subsamples(points) & (points["kind"] != "msa")
    return points["kind"].mask(shrinks, "subsampling").tolist()


def _write_network_stages(rows: list[Axes], points: pd.DataFrame, least: float) -> None:
    """Draw a line between stages, and write over each the size of its maps and its costs.

    Nothing is written over stages of a single stem or of fewer than `least` blocks.
    """
    over: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    over |= {"ha": "center", "va": "bottom", "color": GRAY, "fontsize": "x-small"}
    for stage, members in points.groupby("stage", sort=False):
        first, last = members.index[[0, -1]]
        channels, height, width = members.loc[last, ["channels", "height", "width"]]
        said = [f"{channels}\n{height}×{width}"]
        said += [percent(members[cost].sum() / max(points[cost].sum(), 1)) for cost in _COSTS]
        named = (stage or len(members) > 1) and len(members) >= least
        for axes, text in zip(rows, said if named else (), strict=False):
            axes.annotate(text, ((first + last) / 2, 1), xytext=(0, 2), **over)
        for axes in rows[1:] if first else ():
            axes.axvline(first - 0.5, color=GRAY, lw=THREAD, ls=(0, (2, 2)))
