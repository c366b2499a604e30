"""Feature map variance by depth: Fig. 9 and Fig. D.1 of the paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from vitscope.bands import Band, bands
from vitscope.errors import VitscopeError
from vitscope.figures import Member, canvas
from vitscope.published import Published

_INTERVAL_ALPHA = 0.25


def _points_of(table: pd.DataFrame, model: str) -> pd.DataFrame:
    points = table[table["model"] == model].sort_values("index")
    if points.empty:
        raise VitscopeError(
            f"The feature_variance table has no model '{model}': delete the table and run again."
        )
    return points.reset_index(drop=True)


def _draw_measured(axes: Axes, points: pd.DataFrame, look: canvas.Look) -> None:
    depth = points["depth"]
    axes.fill_between(
        depth, points["ci_low"], points["ci_high"], color=look.color, alpha=_INTERVAL_ALPHA, lw=0
    )
    # The first and the last marker lie on the edge of the panel: they are drawn whole.
    axes.plot(depth, points["variance"], **look.line, clip_on=False, zorder=3)


def _draw_published(axes: Axes, points: pd.DataFrame, look: canvas.Look) -> None:
    depth = points["depth"]
    axes.plot(depth, points["variance"], ":", **_open(look), lw=0.7, clip_on=False, zorder=2.5)


def _open(look: canvas.Look) -> dict[str, Any]:
    return {**look.line, "markerfacecolor": "white", "markeredgewidth": 0.7}


def _markers(styles: Iterable[dict[str, Any]]) -> tuple[Artist, ...]:
    return tuple(Line2D([], [], linestyle="", **style) for style in styles)


def _entries(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> dict[str, Any]:
    """Return the legend: only what the figure shows, and what a title does not say."""
    looks = dict.fromkeys(canvas.look_of(member.family) for member in members)
    with_points = [member for member in members if member.model in published]
    compared = dict.fromkeys(canvas.look_of(member.family) for member in with_points)
    entries: dict[str, Any] = {}
    if compared:
        right = any(not published[member.model].same_model for member in with_points)
        entries["measured"] = _markers(look.line for look in compared)
        told = "published, another model (right axis)" if right else "published"
        entries[told] = _markers(map(_open, compared))
    if table["ci_low"].notna().any():
        entries["95 % interval"] = tuple(
            Patch(facecolor=look.color, alpha=_INTERVAL_ALPHA, lw=0) for look in looks
        )
    return entries


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: variance by normalized depth, its interval, and the bands.

    A published curve of another model has an axis of its own on the right: only its shape compares.
    """
    panels = canvas.panels(len(members))
    shown: list[Band] = []
    for position, (axes, member) in enumerate(zip(panels.axes, members, strict=True)):
        points = _points_of(table, member.model)
        look = canvas.look_of(member.family)
        theirs = published.get(member.model)
        back = canvas.axis_behind(axes) if theirs and not theirs.same_model else axes
        canvas.draw_bands(back, bands(points))
        shown += bands(points)
        if theirs:
            _draw_published(back, theirs.points, look)
        _draw_measured(axes, points, look)
        if back is not axes and panels.in_last_column(position):
            back.set_ylabel("Published variance")
        axes.set_title(member.label)
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
        back.set_ylim(bottom=0)
    panels.label("Normalized depth", "Feature map variance")
    entries = _entries(table, members, published)
    canvas.legend(panels, entries | canvas.band_handles(shown))
    return panels.figure
