"""Decrease of accuracy after one unit is removed: Fig. 10b of the paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.depth_bands import Band, bands
from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.bands import band_entries, draw_bands
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend, markers
from vitscope.drawing.looks import ZERO, Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL, published_label

_LABEL = "Δ accuracy (pp)"
_INTERVAL_WIDTH = 0.8
# The free space above the highest point, over the range from zero to the lowest one.
_ROOM = 0.06
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


def _draw_measured(axes: Axes, units: pd.DataFrame, depth: pd.Series, look: Look) -> None:
    axes.vlines(
        depth, units["ci_low"], units["ci_high"], color=look.color, lw=_INTERVAL_WIDTH, zorder=3
    )
    axes.plot(depth, units["change"], **look.line, linestyle="", zorder=3)


def _draw_published(axes: Axes, units: pd.DataFrame, look: Look) -> None:
    depth = _published_middles(units)
    off = _off_scale(units)
    for rows, style in ((~off, look.hollow), (off, _caret(look))):
        axes.plot(depth[rows], units["change"][rows], linestyle="", **style, zorder=2.5)


def _off_scale(units: pd.DataFrame) -> pd.Series:
    return units.get("source", pd.Series("", units.index)) == _OFF_SCALE


def _caret(look: Look) -> dict[str, Any]:
    size = 1.6 * look.line["markersize"]
    return {**look.hollow, "marker": _OFF_SCALE_MARKER, "markersize": size}


def _entries(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> dict[str, Any]:
    """Return the legend: only what the figure shows, and what a title does not say."""
    compared = {m.model: look_of(m.family) for m in members if m.model in published}
    entries: dict[str, Any] = {}
    if compared:
        off = [look for m, look in compared.items() if _off_scale(published[m].points).any()]
        label = published_label(published[model] for model in compared)
        entries["measured"] = markers(look.line for look in dict.fromkeys(compared.values()))
        entries[label] = markers(look.hollow for look in dict.fromkeys(compared.values()))
        if off:
            entries["extrapolated"] = markers(map(_caret, dict.fromkeys(off)))
    if table["ci_low"].notna().any():
        looks = dict.fromkeys(look_of(member.family) for member in members)
        bar = {"marker": "|", "markersize": 7, "markeredgewidth": _INTERVAL_WIDTH}
        entries[INTERVAL] = markers({**bar, "color": look.color} for look in looks)
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
    panels = layout.panels(len(members))
    shown: list[Band] = []
    for axes, member in zip(panels.axes, members, strict=True):
        units = rows_of("lesion", table, member.model, ["index"])
        points = rows_of("blocks", blocks, member.model, ["index"])
        look = look_of(member.family)
        theirs = published.get(member.model)
        back = layout.axes_of_published(axes, _LABEL, theirs)
        draw_bands(back, bands(points))
        back.axhline(0, **ZERO, zorder=0.5)
        shown += bands(points)
        if theirs:
            _draw_published(back, theirs.points, look)
        _draw_measured(axes, units, _middles(units, points), look)
        layout.share_zero({axes, back}, lambda above: above + _ROOM)
        axes.set_title(member.label)
        axes.set_xlim(0, 1)
    panels.label("Normalized depth", _LABEL)
    entries = _entries(table, members, published)
    legend(panels, entries | band_entries(shown))
    return panels.figure
