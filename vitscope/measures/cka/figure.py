"""CKA of all pairs of cut points: Fig. 10a of the paper."""

from collections.abc import Mapping, Sequence
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.bands import COLORS, mark_entries
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend
from vitscope.drawing.rows import rows_of
from vitscope.errors import VitscopeError
from vitscope.measures.depth_bands import subsamples

Array = npt.NDArray[Any]

_COLOR_MAP = "magma"
_TICKS = (0, 0.5, 1)
_UNDEFINED: dict[str, Any] = {
    "facecolor": "#e6e6e6",
    "edgecolor": "#8c8c8c",
    "hatch": "//////",
    "lw": 0,
}
_BOUNDARY: dict[str, Any] = {"color": "white", "lw": 0.6}

# Points: the middle of the marks outside of a panel, their width, and where labels begin.
_MARKS_AT, _MARKS_WIDTH, _LABELS_AT = 3.2, 3.4, 6.5

# Inches: what the colour bar takes of the width, and how much higher than wide a panel is with all
# that is written around it.
_BAR_WIDTH = 0.55
_TEXT_HEIGHT = 0.2


def _matrix_of(table: pd.DataFrame, model: str, count: int) -> Array:
    """Return the CKA of `count` cut points as a matrix, NaN where there is none."""
    pairs = table[table["model"] == model].sort_values(["index", "other_index"])
    if len(pairs) != count**2:
        raise VitscopeError(
            f"The cka table has {len(pairs)} pairs of cut points of the model '{model}', which has "
            f"{count} cut points: delete the tables and run again."
        )
    return pairs["cka"].to_numpy(np.float64).reshape(count, count)


def _edges(points: pd.DataFrame) -> Array:
    """Return where the cell of each cut point begins, and where the last one ends."""
    step = 1 / max(len(points) - 1, 1)
    depth = points["depth"].to_numpy()
    return np.append(depth, depth[-1] + step) - step / 2


def _draw_cells(axes: Axes, edges: Array, values: Array, lowest: float) -> AxesImage:
    if np.isnan(values).any():
        axes.patch.set(**_UNDEFINED)
    # A picture, not cells that lie side by side: viewers show hairs between these.
    return axes.imshow(
        np.ma.masked_invalid(values),
        extent=(edges[0], edges[-1], edges[0], edges[-1]),
        origin="lower",
        interpolation="nearest",
        cmap=_COLOR_MAP,
        vmin=lowest,
        vmax=1,
    )


def _draw_stages(axes: Axes, edges: Array, stage: Array) -> None:
    """Draw a line where a stage begins, and name the stages above."""
    starts = np.flatnonzero(np.diff(stage, prepend=stage[0] - 1))
    for start in starts[1:]:
        axes.axvline(edges[start], **_BOUNDARY)
        axes.axhline(edges[start], **_BOUNDARY)
    ends = np.append(starts[1:], len(stage))
    names = axes.secondary_xaxis("top")
    middles = (edges[starts] + edges[ends]) / 2
    # The stem, stage 0, is one cell: too narrow for a name.
    named = stage[starts] > 0
    names.set_xticks(middles[named], [f"S{number}" for number in stage[starts][named]])
    names.tick_params(length=0, pad=1)
    names.spines["top"].set_visible(False)


def _draw_marks(figure: Figure, axes: Axes, edges: Array, marked: Array, kind: str) -> None:
    """Mark cut points along both axes, outside of the panel."""
    below = offset_copy(axes.get_xaxis_transform(), figure, y=-_MARKS_AT, units="points")
    left = offset_copy(axes.get_yaxis_transform(), figure, x=-_MARKS_AT, units="points")
    start, end = edges[:-1][marked], edges[1:][marked]
    look: dict[str, Any] = {
        "colors": COLORS[kind],
        "lw": _MARKS_WIDTH,
        "clip_on": False,
    }
    axes.hlines(np.zeros(len(start)), start, end, transform=below, **look)
    axes.vlines(np.zeros(len(start)), start, end, transform=left, **look)


def _marked(points: pd.DataFrame) -> dict[str, Array]:
    """Return which cut points follow an MSA, and which a block that subsamples."""
    attends, shrinks = points["kind"] == "msa", subsamples(points)
    return {"msa": attends.to_numpy(bool), "subsampling": shrinks.to_numpy(bool)}


def _entries(points_of: Sequence[pd.DataFrame], matrices: Sequence[Array]) -> dict[str, Any]:
    """Return the legend: only what the figure shows."""
    marked = [kind for points in points_of for kind, at in _marked(points).items() if at.any()]
    entries: dict[str, Any] = mark_entries(marked)
    if any(np.isnan(values).any() for values in matrices):
        entries["undefined"] = Patch(**_UNDEFINED)
    return entries


def _lowest(matrices: Sequence[Array]) -> float:
    """Return the lower limit of the colours: 0, or a tenth that is below every value."""
    return min(floor(10 * float(np.nanmin(values, initial=0))) / 10 for values in matrices)


def plot(
    table: pd.DataFrame,
    blocks: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published],
) -> Figure:
    """Draw one map per model: the CKA of all pairs of cut points, and what lies between them."""
    panels = layout.square_panels(len(members), _BAR_WIDTH, _TEXT_HEIGHT)
    points_of = [rows_of("blocks", blocks, member.model, ["index"]) for member in members]
    matrices = [
        _matrix_of(table, member.model, len(points))
        for member, points in zip(members, points_of, strict=True)
    ]
    lowest = _lowest(matrices)
    for axes, member, points, values in zip(panels.axes, members, points_of, matrices, strict=True):
        edges = _edges(points)
        cells = _draw_cells(axes, edges, values, lowest)
        _draw_stages(axes, edges, points["stage"].to_numpy())
        for kind, marked in _marked(points).items():
            _draw_marks(panels.figure, axes, edges, marked, kind)
        axes.set(title=member.label, aspect="equal", xticks=_TICKS, yticks=_TICKS)
        axes.set(xlim=edges[[0, -1]], ylim=edges[[0, -1]])
        axes.tick_params(length=0, pad=_LABELS_AT)
        axes.spines[["left", "bottom"]].set_visible(False)
    panels.label("Normalized depth", "Normalized depth")
    bar = panels.figure.colorbar(cells, ax=panels.axes, label="CKA")
    layout.without_edges(bar)
    legend(panels, _entries(points_of, matrices))
    # Titles move above the names of the stages as these are drawn: only then can all be laid out.
    panels.figure.draw_without_rendering()
    return panels.figure
