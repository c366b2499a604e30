"""Error on test images and loss on training images by the window of attention: Fig. 7a."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.axes import axes_of_published
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import INTERVAL_WIDTH, JOINED, look_of
from vitscope.drawing.panels import Panels
from vitscope.drawing.rows import rows_of
from vitscope.measures.classification.figure_fit_shared import LABELS, add_entries

# Models: the published points of one stand to the right of its measured ones.
_BESIDE = 0.2
_SIDE = 0.5
_MARGIN = 0.12
# Characters that stand side by side below a panel; others are turned, and make it higher.
_CHARACTERS, _INCHES_PER_CHARACTER = 30, 0.055


def _draw_measured(axes: Axes, rows: pd.DataFrame, members: Sequence[Member]) -> None:
    """Draw what was measured of the models, from left to right."""
    axes.plot(range(len(members)), rows["value"], **JOINED, zorder=2)
    for place, member in enumerate(members):
        row, look = rows.iloc[place], look_of(member.family)
        ends: dict[str, Any] = {"color": look.color, "linewidth": INTERVAL_WIDTH}
        axes.vlines(place, row["ci_low"], row["ci_high"], **ends)
        axes.plot(place, row["value"], linestyle="", **look.line, zorder=3)


def _draw_published(
    axes: Axes, published: Mapping[str, Published], metric: str, members: Sequence[Member]
) -> None:
    """Draw the published points of those models that have some."""
    points = {
        place + _BESIDE: curve.points.set_index("metric")["value"][metric]
        for place, member in enumerate(members)
        if (curve := published.get(member.model)) is not None
    }
    axes.plot([*points], [*points.values()], **JOINED, linestyle=":", zorder=2)
    for place, value in points.items():
        look = look_of(members[int(place)].family)
        axes.plot(place, value, linestyle="", **look.hollow, zorder=2.5)


def _name(panels: Panels, members: Sequence[Member]) -> None:
    """Write the names of models below panels: in lines, or turned where one is too long."""
    room = max(1, _CHARACTERS // len(members))
    words = [word for member in members for word in member.label.split()]
    longest = max(map(len, words), default=1)
    turned = longest > room
    # Where one is broken, all are.
    width = room if all(len(member.label) <= room for member in members) else longest
    lines = [wrap(member.label, width) for member in members]
    names = [
        member.label if turned else "\n".join(each)
        for member, each in zip(members, lines, strict=True)
    ]
    for axes in panels.axes:
        axes.set_xticks(range(len(members)), names, rotation=90 if turned else 0)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-_SIDE, len(members) - 1 + _SIDE)
    if turned:
        height = panels.figure.get_figheight() + _INCHES_PER_CHARACTER * max(map(len, names))
        panels.resize(height=height)


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw two panels, models from left to right: their errors, and their training losses.

    Published points of other models have axes of their own on the right.
    """
    rows = [rows_of(table, member.model).set_index("metric") for member in members]
    panels = layout.panels(len(LABELS))
    for axes, (metric, label) in zip(panels.axes, LABELS.items(), strict=True):
        _draw_measured(axes, pd.DataFrame([each.loc[metric] for each in rows]), members)
        axes.set_ylabel(label)
        axes.margins(y=_MARGIN)
        if published:
            what = f"{label[0].lower()}{label[1:]}"
            back = axes_of_published(axes, what, *published.values())
            _draw_published(back, published, metric, members)
            back.margins(y=_MARGIN)
    _name(panels, members)
    add_entries(panels.legend, published, "right axis")
    panels.legend.draw(panels.figure)
    return panels.figure
