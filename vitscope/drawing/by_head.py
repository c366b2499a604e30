"""A value of each head by depth, a panel per model: the heads, their mean and its interval."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend, markers, shades
from vitscope.drawing.looks import GRAY, Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL, published_label

_INTERVAL_ALPHA = 0.25
# Points: the markers of single heads.
_HEAD_SIZE = 2.2
_HEAD_ALPHA = 0.55
_UNIFORM: dict[str, Any] = {"color": GRAY, "lw": 0.7, "ls": (0, (4, 2))}


def _draw(axes: Axes, rows: pd.DataFrame, value: str, look: Look) -> None:
    heads, means = rows[rows["head"].notna()], rows[rows["head"].isna()]
    axes.plot(
        heads["depth"],
        heads[value],
        "o",
        color=look.color,
        ms=_HEAD_SIZE,
        mew=0,
        alpha=_HEAD_ALPHA,
        clip_on=False,
    )
    low, high = means[f"{value}_low"], means[f"{value}_high"]
    axes.fill_between(means["depth"], low, high, color=look.color, alpha=_INTERVAL_ALPHA, lw=0)
    axes.plot(means["depth"], means[value], **look.line, clip_on=False, zorder=3)


def _draw_published(
    axes: Axes, theirs: Published, column: str, means: pd.DataFrame, look: Look
) -> None:
    """Draw published blocks where the measured attentions of the same numbers are."""
    depths = theirs.points["block"].map(means.set_index("attention")["depth"])
    axes.plot(depths, theirs.points[column], ":", **look.hollow, lw=0.7, clip_on=False)


def _entries(
    table: pd.DataFrame,
    value: str,
    members: Sequence[Member],
    published: Mapping[str, Published],
    uniform: str | None,
) -> dict[str, Any]:
    looks = [*dict.fromkeys(look_of(member.family) for member in members)]
    found: dict[str, Any] = {
        "head": Line2D([], [], color=GRAY, marker="o", ms=_HEAD_SIZE, mew=0, ls="none"),
        "mean of heads": markers(look.line for look in looks),
    }
    if table[f"{value}_low"].notna().any():
        found[INTERVAL] = shades((look.color for look in looks), _INTERVAL_ALPHA)
    if uniform:
        found["attending to all alike"] = Line2D([], [], **_UNIFORM)
    if published:
        compared = dict.fromkeys(look_of(m.family) for m in members if m.model in published)
        found[published_label(published.values())] = markers(look.hollow for look in compared)
    return found


def plot_by_head(
    value: str,
    label: str,
    table: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published],
    *,
    column: str | None = None,
    uniform: str | None = None,
) -> Figure:
    """Draw a column of the table of attention by normalized depth, one panel per model.

    `label` is what the column is called, and `column` what published points call it. `uniform`
    is the column that has the value of queries that attend to all keys alike.
    """
    panels = layout.panels(len(members))
    for axes, member in zip(panels.axes, members, strict=True):
        rows = rows_of("attention", table, member.model, ["attention", "head"])
        rows = rows[rows[value].notna()]
        means = rows[rows["head"].isna()]
        theirs, look = published.get(member.model), look_of(member.family)
        back = layout.axes_of_published(axes, label.lower(), theirs)
        if theirs and column:
            _draw_published(back, theirs, column, means, look)
            back.set_ylim(bottom=0)
        if uniform:
            axes.plot(means["depth"], means[uniform], **_UNIFORM, zorder=1)
        _draw(axes, rows, value, look)
        axes.set_title(member.label)
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
    panels.label("Normalized depth", label)
    legend(panels, _entries(table, value, members, published, uniform))
    return panels.figure
