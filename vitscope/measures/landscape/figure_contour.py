"""The loss on a plane of weights, as contours."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from vitscope.claims.published import Published
from vitscope.drawing import canvas
from vitscope.drawing.kinds import Member
from vitscope.measures.landscape.above_minimum import (
    COLORS,
    LABEL,
    Array,
    Heights,
    caveats,
    common_cut,
    heights_of,
)

_CUT: dict[str, Any] = {
    "facecolor": "#f2f2f2",
    "edgecolor": "#b0b0b0",
    "hatch": "//////",
    "lw": 0,
}
_BANDS = 20
_LINES: dict[str, Any] = {"colors": "white", "linewidths": 0.4}
_TRAINED: dict[str, Any] = {
    "marker": "+",
    "markersize": 4,
    "markeredgewidth": 0.7,
    "color": "white",
    "linestyle": "",
}

# Inches: what the colour bar takes of the width, and titles and labels of the height.
_BAR_WIDTH, _TEXT_HEIGHT, _LEGEND_HEIGHT, _NOTE_HEIGHT = 0.75, 0.3, 0.2, 0.2


def _square_panels(count: int, note: bool) -> canvas.Panels:
    """Return panels in a figure that is as high as squares need it."""
    panels = canvas.panels(count)
    side = (panels.figure.get_figwidth() - _BAR_WIDTH) / panels.columns
    height = ceil(count / panels.columns) * (side + _TEXT_HEIGHT) + _LEGEND_HEIGHT
    panels.figure.set_figheight(height + note * _NOTE_HEIGHT)
    panels.figure.set_layout_engine("compressed")
    return panels


def _levels(cut: float) -> Array:
    """Return round heights from 0 up to the cut, which is the last one."""
    even = np.asarray(MaxNLocator(_BANDS, steps=[1, 2, 2.5, 5, 10]).tick_values(0, cut))
    return np.append(even[even < cut], cut)


def _draw_map(axes: Axes, heights: Heights, levels: Array) -> QuadContourSet:
    below = np.ma.masked_invalid(heights.below(levels[-1]))
    if below.mask.any():
        axes.patch.set(**_CUT)
    plane = (heights.x, heights.y, below)
    # A face beside a point that is cut is absent, as it is in the surface.
    bands = axes.contourf(*plane, levels, cmap=COLORS, corner_mask=False)
    bands.set_edgecolor("face")
    axes.contour(*plane, levels[1:-1], corner_mask=False, **_LINES)
    axes.plot(0, 0, **_TRAINED)
    return bands


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one map per model: all to one scale, and cut at one height."""
    note = caveats(table, members)
    panels = _square_panels(len(members), bool(note))
    landscapes = [heights_of(table, member) for member in members]
    levels = _levels(common_cut(landscapes))
    for axes, member, heights in zip(panels.axes, members, landscapes, strict=True):
        bands = _draw_map(axes, heights, levels)
        axes.set(title=member.label, aspect="equal")
        axes.set(xlim=heights.x[[0, -1]], ylim=heights.y[[0, -1]])
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.spines[["top", "right"]].set_visible(True)
    panels.label("Steps along the first direction", "Steps along the second direction")
    bar = panels.figure.colorbar(bands, ax=panels.axes, label=LABEL, ticks=MaxNLocator(5))
    bar.outline.set_visible(False)
    cut_off = any(np.isnan(heights.below(levels[-1])).any() for heights in landscapes)
    canvas.legend(panels, {f"cut at {levels[-1]:.3g}": Patch(**_CUT)} if cut_off else {})
    if note:
        panels.figure.suptitle(note)
    return panels.figure
