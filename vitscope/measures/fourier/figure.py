"""Relative log amplitudes over frequency, and their ends by depth: Fig. D.2 of the paper."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing import layout
from vitscope.drawing.axes import depth_bar, share_scale
from vitscope.drawing.figure import Member
from vitscope.measures.fourier.figure_shared import (
    AMPLITUDE,
    COMPONENT,
    curves_of,
    draw_curves,
    draw_ends,
)


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw two panels per model: its curves, and below them their values at 1.0 pi by depth."""
    upper, lower = layout.stacked_panels(len(members), 2)
    for panel in upper.of_models(members, *curves_of(table)):
        draw_curves(panel.axes, panel.rows)
    for panel in lower.of_models(members, *curves_of(table)):
        draw_ends(panel)
    share_scale(upper.axes)
    depth_bar(upper.axes)
    upper.label("Frequency", AMPLITUDE)
    return lower.finish("Normalized depth", COMPONENT)
