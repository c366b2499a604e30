"""Decrease of accuracy after one unit is removed: Fig. 10b of the paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitscope.claims.published import Published
from vitscope.drawing import canvas
from vitscope.drawing.kinds import Member
from vitscope.measures.depth_bands import Band, bands

_LABEL = "Δ accuracy (pp)"
_ZERO_COLOR = "#a0a0a0"
_INTERVAL_WIDTH = 0.8
# A point that the published figure cut off, and that is known from its line alone.
_OFF_SCALE = "extrapolated_offscale"
_OFF_SCALE_MARKER = 7  # A caret that points down.


def _middles(units: pd.DataFrame, points: pd.DataFrame) -> pd.Series:
    """Return where units lie: in the middle of their bands."""
    middles = points.set_index("index")["depth"].rolling(2).mean()
    return middles[units["index"]].reset_index(drop=True)


def _published_middles(units: pd.DataFrame) -> pd.Series:
    """Return the same for published units, which are counted from 0, at a depth of 0, to 1."""
    last = round((units["index"] / units["depth"]).iloc[-1])
    middles: pd.Series = (units["index"] + 0.5) / (last + 1)
    return middles


def _draw_measured(axes: Axes, units: pd.DataFrame, depth: pd.Series, look: canvas.Look) -> None:
    axes.vlines(
        depth, units["ci_low"], units["ci_high"], color=look.color, lw=_INTERVAL_WIDTH, zorder=3
    )
    axes.plot(depth, units["change"], **look.line, linestyle="", zorder=3)


def _draw_published(axes: Axes, units: pd.DataFrame, look: canvas.Look) -> None:
    depth = _published_middles(units)
    off = _off_scale(units)
    for rows, style in ((~off, look.hollow), (off, _caret(look))):
        axes.plot(depth[rows], units["change"][rows], linestyle="", **style, zorder=2.5)


def _off_scale(units: pd.DataFrame) -> pd.Series:
    return units.get("source", pd.Series("", units.index)) == _OFF_SCALE


def _caret(look: canvas.Look) -> dict[str, Any]:
    size = 1.6 * look.line["markersize"]
    return {**look.hollow, "marker": _OFF_SCALE_MARKER, "markersize": size}


def _share_zero(axes: Iterable[Axes]) -> None:
    """Let axes that lie over each other have their zeros at one height, near their tops."""
    lows = {each: min(each.dataLim.y0, 0) or -1 for each in axes}
    room = max(max(each.dataLim.y1, 0) / -low for each, low in lows.items())
    for each, low in lows.items():
        each.set_ylim(1.06 * low, -(room + 0.06) * low)


def _handles(styles: Iterable[dict[str, Any]]) -> tuple[Artist, ...]:
    return tuple(Line2D([], [], linestyle="", **style) for style in styles)


def _entries(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> dict[str, Any]:
    """Return the legend: only what the figure shows, and what a title does not say."""
    compared = {m.model: canvas.look_of(m.family) for m in members if m.model in published}
    entries: dict[str, Any] = {}
    if compared:
        right = any(not published[model].same_model for model in compared)
        off = [look for m, look in compared.items() if _off_scale(published[m].points).any()]
        told = "published, another model (right axis)" if right else "published"
        entries["measured"] = _handles(look.line for look in dict.fromkeys(compared.values()))
        entries[told] = _handles(look.hollow for look in dict.fromkeys(compared.values()))
        if off:
            entries["extrapolated"] = _handles(map(_caret, dict.fromkeys(off)))
    if table["ci_low"].notna().any():
        looks = dict.fromkeys(canvas.look_of(member.family) for member in members)
        bar = {"marker": "|", "markersize": 7, "markeredgewidth": _INTERVAL_WIDTH}
        entries["95 % interval"] = _handles({**bar, "color": look.color} for look in looks)
    return entries


def plot(
    table: pd.DataFrame,
    blocks: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published],
) -> Figure:
    """Draw one panel per model: the change of accuracy without each unit, in the unit's band.

    Published points of another model have an axis of their own on the right, with the same zero.
    """
    panels = canvas.panels(len(members))
    shown: list[Band] = []
    for axes, member in zip(panels.axes, members, strict=True):
        units = canvas.rows_of("lesion", table, member.model, ["index"])
        points = canvas.rows_of("blocks", blocks, member.model, ["index"])
        look = canvas.look_of(member.family)
        theirs = published.get(member.model)
        other = theirs and not theirs.same_model
        back = canvas.axis_behind(axes, f"Published {_LABEL}") if other else axes
        canvas.draw_bands(back, bands(points))
        back.axhline(0, color=_ZERO_COLOR, lw=0.6, zorder=0.5)
        shown += bands(points)
        if theirs:
            _draw_published(back, theirs.points, look)
        _draw_measured(axes, units, _middles(units, points), look)
        _share_zero({axes, back})
        axes.set_title(member.label)
        axes.set_xlim(0, 1)
    panels.label("Normalized depth", _LABEL)
    entries = _entries(table, members, published)
    canvas.legend(panels, entries | canvas.band_handles(shown))
    return panels.figure
