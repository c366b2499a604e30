"""The loss on a plane of weights, as a surface: Fig. 1a and Fig. C.4a of the paper."""

from collections.abc import Mapping, Sequence
from math import ceil

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D

from vitscope.claims.published import Published
from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import LOSS_COLORS, THREAD
from vitscope.drawing.panels import Panels
from vitscope.measures.landscape.above_minimum import (
    LABEL,
    AboveMinimum,
    Array,
    above_minimum,
    caveats,
    common_cut,
)

# As the paper shows it: from where, and the sides of the box that holds the plane and the cut.
_ELEVATION, _AZIMUTH = 15, 15
_BOX = (4 / 0.8, 4 / 0.8, 3 / 22 * 42)
_ZOOM = 1.25

# Inches. What is drawn fills its space: there are no axes that would need any.
_WIDTH, _WIDEST, _SHAPE, _TITLE = 2.4, 7.0, 2.1 / 2.4, 0.2
_BAR_SPACE, _BAR_WIDTH, _BAR_HEIGHT = 0.75, 0.09, 1.3
# There is nothing in the lower corners of the box.
_SINK = 0.12


def _panels(count: int, note: bool) -> Panels:
    """Return a figure with a space for each surface, for the bar, and for a note on top."""
    columns = 2 if count == 4 else min(count, 3)
    rows = ceil(count / columns)
    wide = min(_WIDTH, (_WIDEST - _BAR_SPACE) / columns)
    high = _SHAPE * wide
    width = columns * wide + _BAR_SPACE
    height = rows * (_TITLE + high) + note * _TITLE
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    spaces = []
    for position in range(count):
        row, column = divmod(position, columns)
        bottom = (rows - 1 - row) * (_TITLE + high) - _SINK
        rectangle = (column * wide / width, bottom / height, wide / width, high / height)
        spaces.append(figure.add_axes(rectangle, projection="3d"))
    return Panels(figure, spaces, columns)


def _draw_bar(figure: Figure, colors: ScalarMappable, title: str) -> None:
    """Draw the scale of the loss beside the surfaces."""
    width, height = figure.get_size_inches()
    left, bottom = width - _BAR_SPACE + 0.1, (height - _BAR_HEIGHT) / 2
    axes = figure.add_axes(
        (left / width, bottom / height, _BAR_WIDTH / width, _BAR_HEIGHT / height)
    )
    color_bar([axes], colors, LABEL, cax=axes, ticks=MaxNLocator(5))
    axes.set_title(title, fontsize=matplotlib.rcParams["ytick.labelsize"], loc="left")


def faces(surface: AboveMinimum, cut: float) -> tuple[Array, Array]:
    """Return the corners of the faces whose four points are all below the cut, and their mean.

    A face beside a point that is cut, or whose loss is not finite, is absent.
    """
    z = surface.below(cut)
    x, y = np.meshgrid(surface.x, surface.y)
    points = np.stack([x, y, z], axis=-1)
    corners = np.stack([points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]], axis=2)
    whole = corners[np.isfinite(corners).all(axis=(2, 3))]
    return whole, whole[:, :, 2].mean(axis=1)


def _draw_surface(axes: Axes3D, surface: AboveMinimum, cut: float, colors: ScalarMappable) -> None:
    corners, middle = faces(surface, cut)
    shade = colors.to_rgba(middle)
    axes.add_collection3d(
        Poly3DCollection(corners, facecolors=shade, edgecolors="white", linewidths=THREAD)
    )
    axes.set(xlim=surface.x[[0, -1]], ylim=surface.y[[0, -1]], zlim=(0, cut))
    axes.set_box_aspect(_BOX, zoom=_ZOOM)
    axes.view_init(elev=_ELEVATION, azim=_AZIMUTH)
    axes.set_axis_off()


def plot(
    table: pd.DataFrame, members: Sequence[Member], _published: Mapping[str, Published]
) -> Figure:
    """Draw one surface per model: all from one side, to one scale, and cut at one height.

    Published points are what claims are compared with; a surface shows none.
    """
    note = caveats(table, members)
    panels = _panels(len(members), bool(note))
    landscapes = [above_minimum(table, member) for member in members]
    cut = common_cut(landscapes)
    colors = ScalarMappable(Normalize(0, cut), LOSS_COLORS)
    for axes, member, surface in zip(panels.axes, members, landscapes, strict=True):
        _draw_surface(axes, surface, cut, colors)
        axes.set_title(member.label, y=1, pad=14)
    cut_off = any(np.isnan(surface.below(cut)).any() for surface in landscapes)
    _draw_bar(panels.figure, colors, f"cut at {cut:.3g}" if cut_off else "")
    if note:
        panels.figure.suptitle(note)
    return panels.figure
