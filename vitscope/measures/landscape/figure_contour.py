"""The loss on a plane of weights, as contours."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from vitscope.drawing import layout
from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import CENTRE, LOSS_COLORS, THREAD, UNDEFINED
from vitscope.measures.landscape.above_minimum import (
    LABEL,
    AboveMinimum,
    Array,
    above_minimum,
    caveats,
    common_cut,
)

_BANDS = 20

# Inches: what the colour bar takes of the width, and titles and labels of the height.
_BAR_WIDTH, _TEXT_HEIGHT, _NOTE_HEIGHT = 0.75, 0.3, 0.2


def _levels(cut: float) -> Array:
    """Return round values of the loss from 0 up to the cut, which is the last one."""
    even = np.asarray(MaxNLocator(_BANDS, steps=[1, 2, 2.5, 5, 10]).tick_values(0, cut))
    return np.append(even[even < cut], cut)


def _draw_map(axes: Axes, surface: AboveMinimum, levels: Array) -> QuadContourSet:
    below = np.ma.masked_invalid(surface.below(levels[-1]))
    if below.mask.any():
        axes.patch.set(**UNDEFINED)
    plane = (surface.x, surface.y, below)
    # A face beside a point that is cut is absent, as it is in the surface.
    bands = axes.contourf(*plane, levels, cmap=LOSS_COLORS, corner_mask=False)
    bands.set_edgecolor("face")
    axes.contour(*plane, levels[1:-1], corner_mask=False, colors="white", linewidths=THREAD)
    axes.plot(0, 0, **CENTRE)
    return bands


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one map per model: all to one scale, and cut at one height."""
    note = caveats(table, members)
    above = bool(note) * _NOTE_HEIGHT
    panels = layout.square_panels(len(members), _BAR_WIDTH, _TEXT_HEIGHT, above)
    landscapes = [above_minimum(table, member) for member in members]
    levels = _levels(common_cut(landscapes))
    for axes, member, surface in zip(panels.axes, members, landscapes, strict=True):
        bands = _draw_map(axes, surface, levels)
        axes.set(title=member.label, aspect="equal")
        axes.set(xlim=surface.x[[0, -1]], ylim=surface.y[[0, -1]])
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.spines[["top", "right"]].set_visible(True)
    color_bar(panels.axes, bands, LABEL, ticks=MaxNLocator(5))
    cut_off = any(np.isnan(surface.below(levels[-1])).any() for surface in landscapes)
    if cut_off:
        panels.legend.add(f"cut at {levels[-1]:.3g}", Patch(**UNDEFINED))
    if note:
        panels.figure.suptitle(note)
    return panels.finish("Steps along the first direction", "Steps along the second direction")
