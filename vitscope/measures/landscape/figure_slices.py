"""The loss along two directions of weight space, through the trained weights."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import DOTTED, Look, looks_of
from vitscope.drawing.panels import Panels
from vitscope.measures.landscape.above_minimum import above_minimum, caveats, common_cut, points_of

_NOTE_HEIGHT = 0.2
_ROOM = 1.05
_NAMES = {"x": "First", "y": "Second"}


def _slice(points: pd.DataFrame, along: str) -> pd.DataFrame:
    """Return the points on an axis of the plane, as changes from the trained weights."""
    across = "y" if along == "x" else "x"
    on_axis = points[points[across] == 0].sort_values(along).set_index(along)[["loss", "nll"]]
    return on_axis.where(np.isfinite(on_axis)) - on_axis.loc[0]


def _draw(axes: Axes, changes: pd.DataFrame, look: Look) -> None:
    axes.plot(changes.index, changes["nll"], **look.hollow, **DOTTED, zorder=2.5)
    axes.plot(changes.index, changes["loss"], **look.curve, zorder=3)


def _show_up_to(panels: Panels, cut: float) -> None:
    """Give all panels one scale, from the lowest value to the highest or to the cut."""
    low = min(float(axes.dataLim.y0) for axes in panels.axes)
    high = min(max(float(axes.dataLim.y1) for axes in panels.axes), low + cut)
    margin = (_ROOM - 1) * (high - low or 1)
    for axes in panels.axes:
        axes.set_ylim(low - margin, high + margin)


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per direction: how loss and NLL change along it, all models together."""
    note = caveats(table, members)
    panels = layout.panels(2)
    panels.figure.set_figheight(panels.figure.get_figheight() + bool(note) * _NOTE_HEIGHT)
    looks = looks_of(members)
    for axes, along in zip(panels.axes, ("x", "y"), strict=True):
        for member, look in zip(members, looks, strict=True):
            _draw(axes, _slice(points_of(table, member), along), look)
        axes.set_title(f"{_NAMES[along]} direction")
    _show_up_to(panels, common_cut([above_minimum(table, member) for member in members]))
    panels.legend.add_models(members)
    for look in looks:
        panels.legend.add_line("NLL alone", look.hollow | DOTTED, look)
    if note:
        panels.figure.suptitle(note)
    return panels.finish("Steps from the trained weights", "Change of the loss")
