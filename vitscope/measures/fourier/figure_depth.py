"""The high-frequency component of feature maps by depth: Fig. 8 of the paper."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.bands import band_entries
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend
from vitscope.drawing.looks import look_of
from vitscope.measures.fourier.figure_shared import (
    COMPONENT,
    curves_of,
    draw_ends,
    entries,
    shown_bands,
)


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: the log amplitude at 1.0 pi, relative to that at 0, by depth.

    Published values of another model have an axis of their own on the right: only shapes compare.
    """
    panels = layout.panels(len(members))
    for axes, member in zip(panels.axes, members, strict=True):
        look = look_of(member.family)
        curves = curves_of(table, member.model)
        draw_ends(axes, curves, look, published.get(member.model))
        axes.set_title(member.label)
    panels.label("Normalized depth", COMPONENT)
    handles = band_entries(shown_bands(table, members))
    legend(panels, entries(table, members, published) | handles)
    return panels.figure
