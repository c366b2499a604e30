"""Maps of the similarity of cut points: their cells, and marks of blocks and stages beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from vitscope.claims.points import subsamples
from vitscope.drawing.axes import color_bar
from vitscope.drawing.looks import BAND_COLORS, BOUNDARY, SIMILARITY_COLORS, UNDEFINED
from vitscope.drawing.panels import Panels, make_square_panels
from vitscope.files.arrays import Array

_TICKS = (0, 0.5, 1)

# Distances from a panel, in points.
_MARKS_AT = 3.2  # to the middle of the marks
_MARKS_WIDTH = 3.4
_LABELS_AT = 6.5  # to the beginning of labels

# Inches.
_BAR_WIDTH = 0.55
_TEXT_HEIGHT = 0.2  # by how much a panel with its title and labels is higher than wide
_NAMES_WIDTH = 0.2  # the names of stages beside a panel


@dataclass(frozen=True)
class SimilarityMap:
    """A map of similarity; `up` and `across` are the rows of the block table along its axes.

    `across` is None where a network is compared with itself.
    """

    values: Array
    up: pd.DataFrame
    across: pd.DataFrame | None = None

    def points(self) -> list[pd.DataFrame]:
        """Return the cut points across and up."""
        return [self.up if self.across is None else self.across, self.up]


def panels_of_similarity_maps(count: int, between: bool = False) -> Panels:
    """Return panels for `count` maps, with room for a colour bar.

    `between` says that each map compares two networks.
    """
    # Names beside a square map make it narrower, and therefore less high.
    return make_square_panels(count, _BAR_WIDTH, _TEXT_HEIGHT - between * _NAMES_WIDTH)


def draw_similarity_maps(panels: Panels, maps: Sequence[SimilarityMap], label: str) -> None:
    """Draw a map in each panel, with one colour bar and one legend for all.

    Panels must have their titles and labels already.
    """
    # Begin the colours at 0, or at the next tenth below the lowest value (with a margin of 0.02).
    lowest = min(floor(10 * (np.nanmin(each.values, initial=0) + 0.02)) / 10 for each in maps)
    for axes, each in zip(panels.axes, maps, strict=True):
        cells = _draw_similarity_map(panels.figure, axes, each, lowest)
    color_bar(panels.axes, cells, label)
    points = [points for each in maps for points in each.points()]
    for kind in {
        kind for each in points for kind, at in _marked_cut_points(each).items() if at.any()
    }:
        panels.legend.add_band(kind, facecolor=BAND_COLORS[kind], lw=0)
    if any(np.isnan(each.values).any() for each in maps):
        panels.legend.add("undefined", Patch(**UNDEFINED))
    panels.legend.draw(panels.figure, None if panels.whole else panels.axes[0])
    # Draw once: this moves titles above the names of stages, where the layout needs them.
    panels.figure.draw_without_rendering()


def _draw_similarity_map(
    figure: Figure, axes: Axes, drawn: SimilarityMap, lowest: float
) -> AxesImage:
    across, up = map(_edges_of_cells, drawn.points())
    if np.isnan(drawn.values).any():
        axes.patch.set(**UNDEFINED)
    # Draw a picture: between separate cells, viewers show thin lines.
    cells = axes.imshow(
        np.ma.masked_invalid(drawn.values),
        extent=(across[0], across[-1], up[0], up[-1]),
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        cmap=SIMILARITY_COLORS,
        vmin=lowest,
        vmax=1,
    )
    for start in _starts_of_stages(drawn.points()[0])[1:]:
        axes.axvline(across[start], **BOUNDARY)
    for start in _starts_of_stages(drawn.up)[1:]:
        axes.axhline(up[start], **BOUNDARY)
    _name_stages(axes.secondary_xaxis("top").xaxis, across, drawn.points()[0])
    if drawn.across is not None:
        _name_stages(axes.secondary_yaxis("right").yaxis, up, drawn.up)
    below = offset_copy(axes.get_xaxis_transform(), figure, y=-_MARKS_AT, units="points")
    left = offset_copy(axes.get_yaxis_transform(), figure, x=-_MARKS_AT, units="points")
    _draw_marks_beside(axes.hlines, across, drawn.points()[0], below)
    _draw_marks_beside(axes.vlines, up, drawn.up, left)
    axes.set(xticks=_TICKS, yticks=_TICKS, xlim=across[[0, -1]], ylim=up[[0, -1]])
    axes.set_box_aspect(1)
    axes.tick_params(length=0, pad=_LABELS_AT)
    axes.spines[["left", "bottom"]].set_visible(False)
    return cells


def _edges_of_cells(points: pd.DataFrame) -> Array:
    """Return where the cell of each cut point begins, and where the last cell ends."""
    step = 1 / max(len(points) - 1, 1)
    depth = points["depth"].to_numpy()
    return np.append(depth, depth[-1] + step) - step / 2


def _starts_of_stages(points: pd.DataFrame) -> Array:
    stage = points["stage"].to_numpy()
    return np.flatnonzero(np.diff(stage, prepend=stage[0] - 1))


def _name_stages(names: Axis, edges: Array, points: pd.DataFrame) -> None:
    starts, stage = _starts_of_stages(points), points["stage"].to_numpy()
    ends = np.append(starts[1:], len(stage))
    middles = (edges[starts] + edges[ends]) / 2
    # The stem, stage 0, is one cell: too narrow for a name.
    named = stage[starts] > 0
    names.set_ticks(middles[named], [f"S{number}" for number in stage[starts][named]])
    names.set_tick_params(length=0, pad=1)
    for spine in names.axes.spines.values():
        spine.set_visible(False)


def _draw_marks_beside(
    draw_lines: Callable[..., object], edges: Array, points: pd.DataFrame, beside: Any
) -> None:
    """Mark MSAs and subsampling blocks along an axis, outside of the panel."""
    for kind, marked in _marked_cut_points(points).items():
        start, end = edges[:-1][marked], edges[1:][marked]
        look: dict[str, Any] = {"colors": BAND_COLORS[kind], "lw": _MARKS_WIDTH, "clip_on": False}
        draw_lines(np.zeros(len(start)), start, end, transform=beside, **look)


def _marked_cut_points(points: pd.DataFrame) -> dict[str, Array]:
    """Return which cut points follow an MSA, and which follow a block that subsamples."""
    attends, shrinks = points["kind"] == "msa", subsamples(points)
    return {"msa": attends.to_numpy(bool), "subsampling": shrinks.to_numpy(bool)}
