"""A point for each model at two values, with their intervals, and published points beside it."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.claims.points import AllPublished
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members
from vitscope.drawing.legends import INTERVAL, published_legend_label
from vitscope.drawing.looks import BAR_ALPHA, GRAY, Look, looks_of
from vitscope.drawing.panels import make_panels, members_apart

# Points have intervals along both axes, which need more height than curves do.
_TALLER = 1.25
_MARGIN = 0.1
_TICKS = 4  # along x
_MARKERS = "osD^v<>"


def plot_scatter(
    values: pd.DataFrame,
    counted: Mapping[str, pd.DataFrame],
    labels: Mapping[str, str],
    members: Members,
    published: AllPublished,
) -> Figure:
    """Draw a point for each model; trainings of one recipe look alike.

    `labels` names the two columns of `values`, along x and y, which have a row for each model and
    the ends of intervals in columns such as `{x}_low`. `counted` has by label the rows of the
    figure's table that say how many images were measured.
    """
    apart = bool(members_apart(members, published))
    panels = make_panels(1 + apart)
    panels.resize(height=_TALLER * panels.figure.get_figheight())
    ours, theirs = panels.axes[0], panels.axes[-1]
    for label, rows in counted.items():
        count_rows(rows, ours, of=label)
    by_recipe: dict[str, list[Member]] = {}
    for member in members:
        by_recipe.setdefault(member.recipe or member.model, []).append(member)
    groups = [*by_recipe.values()]
    for look, group in zip(_looks_of_points([group[0] for group in groups]), groups, strict=True):
        panels.legend.add_marker(group[0].label, look.line)
        for member in group:
            _draw_point(ours, values[values.index == member.model].iloc[0], [*labels], look)
            if member.model in published:
                points = published[member.model].points
                x, y = (points[each] for each in labels)
                theirs.plot(x, y, **look.hollow, linestyle="", zorder=2.5)
    panels.legend.add_line(INTERVAL, {"color": GRAY, "alpha": BAR_ALPHA})
    if published:
        label = published_legend_label(published.values(), others="other models")
        panels.legend.add_marker(label, Look(GRAY, "o").hollow)
    if apart:
        for axes, title in zip(panels.axes, ("measured", "published"), strict=True):
            axes.set_title(title)
    for axes in panels.axes:
        axes.xaxis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 5, 10]))
        axes.margins(_MARGIN)
    across, up = labels.values()
    return panels.finish(across, up)


def _looks_of_points(members: Members) -> list[Look]:
    """Return the looks of models; points of one family, which dashes do not tell apart, differ."""
    looks = looks_of(members)
    if len(looks) > 1 and len({look.marker for look in looks}) == 1:
        return [
            replace(look, marker=marker, size=1)
            for look, marker in zip(looks, cycle(_MARKERS), strict=False)
        ]
    return looks


def _draw_point(axes: Axes, values: pd.Series, columns: list[str], look: Look) -> None:
    x, y = columns
    line: dict[str, Any] = {"color": look.color, "alpha": BAR_ALPHA, "zorder": 1}
    axes.hlines(values[y], values[f"{x}_low"], values[f"{x}_high"], **line)
    axes.vlines(values[x], values[f"{y}_low"], values[f"{y}_high"], **line)
    axes.plot(values[x], values[y], **look.line, linestyle="", zorder=3)
