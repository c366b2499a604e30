"""The high-frequency component of feature maps by depth: Fig. 8 of the paper."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.measures.fourier.figure_shared import COMPONENT, curves_of, draw_ends


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: the log amplitude at 1.0 pi, relative to that at 0, by depth.

    Published values of another model have an axis of their own on the right: only shapes compare.
    """
    panels = layout.panels(len(members))
    for panel in panels.of_models(members, *curves_of(table), published):
        draw_ends(panel)
    return panels.finish("Normalized depth", COMPONENT)
