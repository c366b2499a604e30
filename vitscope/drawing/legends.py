"""Legends: one for all panels, and the entries that several kinds of figures have."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from matplotlib.artist import Artist
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from vitscope.drawing.figure import Member
from vitscope.drawing.layout import Panels
from vitscope.drawing.looks import Look


def legend(panels: Panels, entries: Mapping[str, Any]) -> None:
    """Put one legend for all panels below them, in as few rows as it has room in.

    An entry is what matplotlib accepts as a handle; a tuple of them stands side by side. In axes of
    another figure the legend stands among what is drawn.
    """
    handler = {tuple: HandlerTuple(ndivide=None, pad=0)}
    if not panels.whole:
        panels.axes[0].legend(list(entries.values()), list(entries), handler_map=handler)
        return
    for rows in range(1, len(entries) + 1):
        drawn = panels.figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=ceil(len(entries) / rows),
            handler_map=handler,
        )
        if rows == len(entries) or drawn.get_window_extent().width <= panels.figure.bbox.width:
            break
        drawn.remove()


def model_entries(members: Sequence[Member], looks: Iterable[Look]) -> dict[str, Any]:
    """Return an entry for each model, where models share a panel."""
    return {
        member.label: Line2D([], [], **look.curve)
        for member, look in zip(members, looks, strict=True)
    }


def markers(styles: Iterable[Mapping[str, Any]]) -> tuple[Artist, ...]:
    """Return markers that stand side by side in one entry."""
    return tuple(Line2D([], [], linestyle="", **style) for style in styles)


def shades(colors: Iterable[str], alpha: float) -> tuple[Artist, ...]:
    """Return shades that stand side by side in one entry, as around curves with intervals."""
    return tuple(Patch(facecolor=color, alpha=alpha, lw=0) for color in colors)
