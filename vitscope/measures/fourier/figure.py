"""Relative log amplitudes over frequency, and their ends by depth: Fig. D.2 of the paper."""

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
    AMPLITUDE,
    COMPONENT,
    curves_of,
    draw_curves,
    draw_ends,
    entries,
    shown_bands,
)


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw two panels per model: its curves, and below them their values at 1.0 pi by depth."""
    upper, lower = layout.stacked_panels(len(members), 2)
    for above, below, member in zip(upper.axes, lower.axes, members, strict=True):
        curves = curves_of(table, member.model)
        draw_curves(above, curves)
        draw_ends(below, curves, look_of(member.family))
        above.set_title(member.label)
    layout.share_scale(upper.axes)
    layout.depth_bar(upper.figure, upper.axes)
    upper.label("Frequency", AMPLITUDE)
    lower.label("Normalized depth", COMPONENT)
    handles = band_entries(shown_bands(table, members))
    legend(lower, entries(table, members, {}) | handles)
    return upper.figure
