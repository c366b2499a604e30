from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D
from mpl_toolkits.mplot3d.proj3d import proj_transform

from vitscope.drawing.axes import color_bar
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members
from vitscope.drawing.legends import percent
from vitscope.drawing.looks import (
    CENTRE,
    DOTTED,
    GRAY,
    GRID,
    LOSS_COLORS,
    THREAD,
    UNDEFINED,
    looks_of,
    text_scale,
)
from vitscope.drawing.panels import Panels, columns_of, make_panels, make_square_panels, page_width
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array

LABEL = "Loss above its minimum"

# The highest loss that is shown, as a multiple of the median loss of the flattest landscape. The
# paper shows losses below 42, which is 4.4 times the median loss of its ViT.
_CUT_OVER_MEDIAN = 4.4


@dataclass(frozen=True)
class AboveMinimum:
    """Holds a model's loss minus its minimum: a row for each y, a column for each x.

    Losses that are not finite are NaN.
    """

    x: Array
    y: Array
    loss: Array

    def share_above(self, cut: float) -> float:
        """Return the share of points whose loss is above the cut or not finite."""
        return 1 - float((self.loss <= cut).mean())


@dataclass(frozen=True)
class Landscapes:
    """Holds the landscapes of a figure, one per model, and the loss above which they are cut."""

    surfaces: list[AboveMinimum]
    cut: float

    @property
    def cut_label(self) -> str:
        """The label that says where landscapes are cut; empty if none is."""
        above = any(each.share_above(self.cut) for each in self.surfaces)
        return f"cut at {self.cut:.3g}" if above else ""

    def title(self, member: Member, surface: AboveMinimum) -> str:
        """Return the title of a landscape: the model, and the share of points cut, if any."""
        share = surface.share_above(self.cut)
        return f"{member.label}\n{percent(share)} of points cut" if share else member.label


def drawn_landscape_points(table: pd.DataFrame, member: Member) -> pd.DataFrame:
    """Return the points of a model in its first pair of directions, with x varying fastest.

    Refuse an incomplete grid, and one without a finite loss.
    """
    drawn = (table["model"] == member.model) & (table["direction"] == 0)
    points = table[drawn].sort_values(["y", "x"], ignore_index=True)
    if points.empty or len(points) != points["x"].nunique() * points["y"].nunique():
        raise VitscopeError(
            f"The landscape table has {len(points)} points of the model '{member.model}', which "
            f"are no whole grid: delete the table and run again."
        )
    if not np.isfinite(points["loss"]).any():
        raise VitscopeError(
            f"The loss of {member.label} is finite nowhere on its landscape: check its checkpoint, "
            f"or lower analysis.landscape.radius."
        )
    return points


def above_minimum(table: pd.DataFrame, member: Member) -> AboveMinimum:
    """Return the loss of a model on its grid, minus its lowest value."""
    points = drawn_landscape_points(table, member)
    x, y = points["x"].unique(), points["y"].unique()
    loss = points["loss"].to_numpy(np.float64).reshape(len(y), len(x))
    finite = np.where(np.isfinite(loss), loss, np.nan)
    return AboveMinimum(x, y, finite - np.nanmin(finite))


def read_landscapes(table: pd.DataFrame, members: Members) -> Landscapes:
    """Return the landscapes of models, cut at a multiple of the median loss of the flattest."""
    landscapes = [above_minimum(table, member) for member in members]
    flattest = min(float(np.nanmedian(each.loss)) for each in landscapes)
    highest = max(float(np.nanmax(each.loss)) for each in landscapes)
    return Landscapes(landscapes, min(_CUT_OVER_MEDIAN * flattest, highest) or 1.0)


def landscape_caveats(table: pd.DataFrame, members: Members) -> str:
    """Return a note on which loss is shown; empty for one with an L2 term on augmented images.

    Whether a network was trained on another one than this, the table does not know.
    """
    shown = table[table["model"].isin([member.model for member in members])]
    missing = []
    if (shown["weight_decay"] == 0).any():
        missing.append("without the L2 term")
    if shown["clean"].any():
        missing.append("on clean images")
    return f"The loss {' and '.join(missing)}" if missing else ""


# The point of view of the paper, in degrees.
_ELEVATION, _AZIMUTH = 15, 15
# The relative lengths of the box along x, y and the loss, as in the paper.
_BOX = (4 / 0.8, 4 / 0.8, 3 / 22 * 42)
_ZOOM = 1.25

_WIDTH = 2.4  # the largest width of a surface, in inches
_SHAPE = 2.1 / 2.4  # the height of a surface divided by its width
_TITLE = 0.4  # the height of a title or a note, in inches
_BAR_SPACE = 0.75  # the width of the colour bar with its labels, in inches
_BAR_WIDTH = 0.09  # inches
_BAR_HEIGHT = 1.3  # inches
# The height of the names of directions below a surface, in inches.
_NAMES = 0.16


def _surface_panels(count: int, note: bool) -> Panels:
    """Return a figure with space for `count` surfaces, a colour bar and, on top, a note if any."""
    columns = columns_of(count)
    rows = ceil(count / columns)
    wide = min(_WIDTH, (page_width() - _BAR_SPACE * text_scale()) / columns)
    high, below = _SHAPE * wide, _NAMES * text_scale()
    width = columns * wide + _BAR_SPACE * text_scale()
    title = _TITLE * text_scale()
    height = rows * (title + high + below) + note * title
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    spaces = []
    for position in range(count):
        row, column = divmod(position, columns)
        bottom = (rows - 1 - row) * (title + high + below) + below
        rectangle = (column * wide / width, bottom / height, wide / width, high / height)
        spaces.append(figure.add_axes(rectangle, projection="3d"))
    return Panels(figure, spaces, columns)


def _draw_landscape_color_bar(figure: Figure, colors: ScalarMappable, title: str) -> None:
    width, height = figure.get_size_inches()
    high = _BAR_HEIGHT * text_scale()
    left, bottom = width - _BAR_SPACE * text_scale() + 0.1, (height - high) / 2
    axes = figure.add_axes((left / width, bottom / height, _BAR_WIDTH / width, high / height))
    color_bar([axes], colors, LABEL, cax=axes, ticks=MaxNLocator(5))
    axes.set_title(title, fontsize=matplotlib.rcParams["ytick.labelsize"], loc="left")


def surface_faces_below_cut(surface: AboveMinimum, cut: float) -> list[Array]:
    """Return the polygons of a surface below the cut: (corners, 3) for each face of the grid.

    Faces with a corner that is not finite, and faces wholly above the cut, are left out.
    """
    x, y = np.meshgrid(surface.x, surface.y)
    points = np.stack([x, y, surface.loss], axis=-1)
    corners = np.stack([points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]], axis=2)
    finite = corners[np.isfinite(corners).all(axis=(2, 3))]
    return [
        below for each in finite if len(below := _clip_surface_face(each, cut - each[:, 2])) > 2
    ]


def _clip_surface_face(corners: Array, room: Array) -> Array:
    """Cut off the part of a polygon where `room`, one value per corner, is negative.

    `room` is linear along edges.
    """
    found = []
    for place, (one, here) in enumerate(zip(corners, room, strict=True), 1 - len(room)):
        other, there = corners[place], room[place]
        if here >= 0:
            found.append(one)
        if (here >= 0) != (there >= 0):
            found.append(one + here / (here - there) * (other - one))
    return np.array(found)


def split_surface_face(face: Array, levels: Array) -> Iterator[Array]:
    """Cut a face at each level of the loss, and yield the parts, each drawn in one colour."""
    for low, high in pairwise(levels):
        below = _clip_surface_face(face, high - face[:, 2])
        band = _clip_surface_face(below, below[:, 2] - low) if len(below) else below
        if len(band) > 2:
            yield band


def _draw_surface(axes: Axes3D, surface: AboveMinimum, cut: float, colors: ScalarMappable) -> None:
    drawn = [
        band
        for face in surface_faces_below_cut(surface, cut)
        for band in split_surface_face(face, _contour_levels(cut))
    ]
    shade = colors.to_rgba(np.array([each[:, 2].mean() for each in drawn]))
    axes.add_collection3d(
        Poly3DCollection(drawn, facecolors=shade, edgecolors="white", linewidths=THREAD)
    )
    axes.set(xlim=surface.x[[0, -1]], ylim=surface.y[[0, -1]], zlim=(0, cut))
    axes.set_box_aspect(_BOX, zoom=_ZOOM)
    axes.view_init(elev=_ELEVATION, azim=_AZIMUTH)
    axes.set_axis_off()
    # Draw the edges of the plane below the surface, and name the directions.
    (left, right), (front, back) = surface.x[[0, -1]], surface.y[[0, -1]]
    edges = np.array([[left, front], [right, front], [right, back], [left, back], [left, front]])
    axes.plot(*edges.T, zs=0, **GRID, zorder=0)
    axes.computed_zorder = False
    named = {"first\ndirection": (0, back, "left"), "second direction": (right, 0, "center")}
    for name, (x, y, side) in named.items():
        at = proj_transform(x, y, 0, axes.get_proj())[:2]
        how: dict[str, Any] = {"ha": side, "va": "top", "size": "x-small", "color": GRAY}
        axes.annotate(name, at, (2, -2), textcoords="offset points", **how)


def plot_landscape(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one surface per model, all with the same point of view, scale and cut."""
    note = landscape_caveats(table, members)
    panels = _surface_panels(len(members), bool(note))
    landscapes = read_landscapes(table, members)
    colors = ScalarMappable(Normalize(0, landscapes.cut), LOSS_COLORS)
    for axes, member, surface in zip(panels.axes, members, landscapes.surfaces, strict=True):
        count_rows(drawn_landscape_points(table, member), axes)
        _draw_surface(axes, surface, landscapes.cut, colors)
        axes.set_title(landscapes.title(member, surface), y=1, pad=14)
    _draw_landscape_color_bar(panels.figure, colors, landscapes.cut_label)
    panels.add_note(note)
    return panels.figure


def _contour_levels(cut: float) -> Array:
    """Return round values of the loss from 0, with the cut itself as the last."""
    even = np.asarray(MaxNLocator(20, steps=[1, 2, 2.5, 5, 10]).tick_values(0, cut))
    return np.append(even[even < cut], cut)


def plot_landscape_contour(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one contour map per model, all with the same scale and cut."""
    note = landscape_caveats(table, members)
    panels = make_square_panels(len(members), _BAR_SPACE, 0.3, above=bool(note) * _TITLE)
    landscapes = read_landscapes(table, members)
    levels = _contour_levels(landscapes.cut)
    for axes, member, surface in zip(panels.axes, members, landscapes.surfaces, strict=True):
        count_rows(drawn_landscape_points(table, member), axes)
        if surface.share_above(levels[-1]):
            axes.patch.set(**UNDEFINED)
        plane = (surface.x, surface.y, np.ma.masked_invalid(surface.loss))
        # Leave out faces beside a point that is not finite, as `plot_landscape` does.
        bands = axes.contourf(*plane, levels, cmap=LOSS_COLORS, corner_mask=False)
        bands.set_edgecolor("face")
        axes.contour(*plane, levels[1:-1], corner_mask=False, colors="white", linewidths=THREAD)
        axes.plot(0, 0, **CENTRE)
        axes.set(title=landscapes.title(member, surface), aspect="equal")
        axes.set(xlim=surface.x[[0, -1]], ylim=surface.y[[0, -1]])
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.spines[["top", "right"]].set_visible(True)
    color_bar(panels.axes, bands, LABEL, ticks=MaxNLocator(5))
    if landscapes.cut_label:
        panels.legend.add(landscapes.cut_label, Patch(**UNDEFINED))
    panels.add_note(note)
    return panels.finish("Steps along the first direction", "Steps along the second direction")


def plot_landscape_slices(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one panel per direction: the change of loss and NLL of all models along it."""
    note = landscape_caveats(table, members)
    panels = make_panels(2)
    panels.figure.set_figheight(panels.figure.get_figheight() + bool(note) * _TITLE)
    looks, directions = looks_of(members), (("First", "x", "y"), ("Second", "y", "x"))
    for axes, (name, along, across) in zip(panels.axes, directions, strict=True):
        for member, look in zip(members, looks, strict=True):
            points = drawn_landscape_points(table, member)
            count_rows(points, axes)
            on_axis = points[points[across] == 0].set_index(along)[["loss", "nll"]].sort_index()
            changes = on_axis.where(np.isfinite(on_axis)) - on_axis.loc[0]
            axes.plot(changes.index, changes["nll"], **look.hollow, **DOTTED, zorder=2.5)
            axes.plot(changes.index, changes["loss"], **look.curve, zorder=3)
        axes.set_title(f"{name} direction")
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    # Give all panels one scale, from the lowest value to the highest, or to the cut if it is lower.
    low = min(float(axes.dataLim.y0) for axes in panels.axes)
    cut = low + read_landscapes(table, members).cut
    high = min(max(float(axes.dataLim.y1) for axes in panels.axes), cut)
    margin = 0.05 * (high - low or 1)
    for axes in panels.axes:
        axes.set_ylim(low - margin, high + margin)
    panels.legend.add_models(members)
    for look in looks:
        panels.legend.add_line("NLL alone", look.hollow | DOTTED, look)
    panels.add_note(note)
    return panels.finish("Steps from the trained weights", "Change of the loss")
