"""A value by depth, a panel per model: the curve, its interval, and the bands of the blocks."""

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
from vitscope.drawing.layout import Panels
from vitscope.drawing.legends import legend, markers, shades
from vitscope.drawing.looks import Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL, published_label

_INTERVAL_ALPHA = 0.25


def _draw_measured(axes: Axes, points: pd.DataFrame, value: str, look: Look) -> None:
    depth = points["depth"]
    axes.fill_between(
        depth, points["ci_low"], points["ci_high"], color=look.color, alpha=_INTERVAL_ALPHA, lw=0
    )
    # The first and the last marker lie on the edge of the panel: they are drawn whole.
    axes.plot(depth, points[value], **look.line, clip_on=False, zorder=3)


def _draw_published(axes: Axes, points: pd.DataFrame, value: str, look: Look) -> None:
    depth = points["depth"]
    axes.plot(depth, points[value], ":", **look.hollow, lw=0.7, clip_on=False, zorder=2.5)


def _entries(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> dict[str, Any]:
    """Return the legend: only what the figure shows, and what a title does not say."""
    looks = dict.fromkeys(look_of(member.family) for member in members)
    with_points = [member for member in members if member.model in published]
    compared = dict.fromkeys(look_of(member.family) for member in with_points)
    entries: dict[str, Any] = {}
    if compared:
        label = published_label(published[member.model] for member in with_points)
        entries["measured"] = markers(look.line for look in compared)
        entries[label] = markers(look.hollow for look in compared)
    if table["ci_low"].notna().any():
        entries[INTERVAL] = shades((look.color for look in looks), _INTERVAL_ALPHA)
    return entries


def panels_by_depth(
    members: Sequence[Member], points: Sequence[pd.DataFrame]
) -> tuple[Panels, list[Band]]:
    """Return a panel for each model, by normalized depth, and the bands that are drawn in them.

    `points` are the cut points of each model, in order.
    """
    panels = layout.panels(len(members))
    shown: list[Band] = []
    for axes, member, of_model in zip(panels.axes, members, points, strict=True):
        shaded = bands(of_model)
        draw_bands(axes, shaded)
        shown += shaded
        axes.set_title(member.label)
        axes.set_xlim(0, 1)
    return panels, shown


def plot_by_depth(
    name: str,
    value: str,
    label: str,
    table: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published],
    *,
    from_zero: bool = True,
) -> Figure:
    """Draw a column of a table by normalized depth, one panel per model.

    `label` is what the column is called. A published curve of another model has an axis of its own
    on the right: only its shape compares.
    """
    panels = layout.panels(len(members))
    shown: list[Band] = []
    for axes, member in zip(panels.axes, members, strict=True):
        points = rows_of(name, table, member.model, ["index"])
        look = look_of(member.family)
        theirs = published.get(member.model)
        back = layout.axes_of_published(axes, value, theirs)
        draw_bands(back, bands(points))
        shown += bands(points)
        if theirs:
            _draw_published(back, theirs.points, value, look)
        _draw_measured(axes, points, value, look)
        axes.set_title(member.label)
        axes.set_xlim(0, 1)
        if from_zero:
            axes.set_ylim(bottom=0)
            back.set_ylim(bottom=0)
    panels.label("Normalized depth", label)
    entries = _entries(table, members, published)
    legend(panels, entries | band_entries(shown))
    return panels.figure
