"""The high-frequency component of feature maps by depth: Fig. 8 of the paper."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.figures import Member, canvas
from vitscope.figures._fourier import (
    AMPLITUDE,
    COMPONENT,
    curves_of,
    draw_ends,
    entries,
    shown_bands,
)
from vitscope.published import Published


def _label_behind(panels: canvas.Panels, behind: Mapping[int, Axes]) -> None:
    """Label the last of the axes behind in each row."""
    last = {position // panels.columns: axes for position, axes in sorted(behind.items())}
    for axes in last.values():
        axes.set_ylabel(f"Published {AMPLITUDE}")


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: the log amplitude at 1.0 pi, relative to that at 0, by depth.

    Published values of another model have an axis of their own on the right: only shapes compare.
    """
    panels = canvas.panels(len(members))
    behind = {}
    for position, (axes, member) in enumerate(zip(panels.axes, members, strict=True)):
        look = canvas.look_of(member.family)
        curves = curves_of(table, member.model)
        back = draw_ends(axes, curves, look, published.get(member.model))
        if back is not axes:
            behind[position] = back
        axes.set_title(member.label)
    _label_behind(panels, behind)
    panels.label("Normalized depth", COMPONENT)
    handles = canvas.band_handles(shown_bands(table, members))
    canvas.legend(panels, entries(table, members, published) | handles)
    return panels.figure
