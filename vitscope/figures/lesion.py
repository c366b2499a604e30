"""Decrease of accuracy after one unit is removed: Fig. 10b of the paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitscope.bands import Band, bands
from vitscope.errors import VitscopeError
from vitscope.figures import Member, canvas
from vitscope.published import Published

_ZERO_COLOR = "#a0a0a0"
_INTERVAL_WIDTH = 0.8
# A point that the published figure cut off, and that is known from its line alone.
_OFF_SCALE = "extrapolated_offscale"
_OFF_SCALE_MARKER = 7  # A caret that points down.


def _rows_of(name: str, table: pd.DataFrame, model: str) -> pd.DataFrame:
    rows = table[table["model"] == model].sort_values("index")
    if rows.empty:
        raise VitscopeError(
            f"The {name} table has no model '{model}': delete the table and run again."
        )
    return rows.reset_index(drop=True)


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
    for rows, style in ((~off, _open(look)), (off, _caret(look))):
        axes.plot(depth[rows], units["change"][rows], linestyle="", **style, zorder=2.5)


def _off_scale(units: pd.DataFrame) -> pd.Series:
    return units.get("source", pd.Series("", units.index)) == _OFF_SCALE


def _open(look: canvas.Look) -> dict[str, Any]:
    return {**look.line, "markerfacecolor": "white", "markeredgewidth": 0.7}


def _caret(look: canvas.Look) -> dict[str, Any]:
    style = _open(look)
    return {**style, "marker": _OFF_SCALE_MARKER, "markersize": 1.6 * style["markersize"]}


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
        entries[told] = _handles(map(_open, dict.fromkeys(compared.values())))
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
    for position, (axes, member) in enumerate(zip(panels.axes, members, strict=True)):
        units = _rows_of("lesion", table, member.model)
        points = _rows_of("blocks", blocks, member.model)
        look = canvas.look_of(member.family)
        theirs = published.get(member.model)
        back = canvas.axis_behind(axes) if theirs and not theirs.same_model else axes
        canvas.draw_bands(back, bands(points))
        back.axhline(0, color=_ZERO_COLOR, lw=0.6, zorder=0.5)
        shown += bands(points)
        if theirs:
            _draw_published(back, theirs.points, look)
        _draw_measured(axes, units, _middles(units, points), look)
        _share_zero({axes, back})
        if back is not axes and panels.in_last_column(position):
            back.set_ylabel("Published Δ accuracy (pp)")
        axes.set_title(member.label)
        axes.set_xlim(0, 1)
    panels.label("Normalized depth", "Δ accuracy (pp)")
    entries = _entries(table, members, published)
    canvas.legend(panels, entries | canvas.band_handles(shown))
    return panels.figure
