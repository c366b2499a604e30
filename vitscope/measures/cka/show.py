from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor
from textwrap import fill
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
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.looks import BAND_COLORS, BOUNDARY, BY_CHANCE, SIMILARITY_COLORS, UNDEFINED
from vitscope.drawing.panels import LEAST, Panels, make_square_panels
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.cka.measure import LEVEL

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
    """A map of similarity, with the rows of the block table across and up."""

    cka: Array
    by_chance: Array
    across: pd.DataFrame
    up: pd.DataFrame


def _draw_similarity_maps(panels: Panels, maps: Sequence[SimilarityMap]) -> None:
    """Draw a map in each panel, with one colour bar and one legend for all.

    Panels must have their titles and labels already.
    """
    # Begin the colours at 0, or at the next tenth below the lowest value (with a margin of 0.02).
    lowest = min(floor(10 * (np.nanmin(each.cka, initial=0) + 0.02)) / 10 for each in maps)
    for axes, each in zip(panels.axes, maps, strict=True):
        cells = _draw_similarity_map(panels.figure, axes, each, lowest)
    color_bar(panels.axes, cells, "CKA")
    points = [points for each in maps for points in (each.across, each.up)]
    for kind in {
        kind for each in points for kind, at in _marked_cut_points(each).items() if at.any()
    }:
        panels.legend.add_band(kind, facecolor=BAND_COLORS[kind], lw=0)
    if any(np.isnan(each.cka).any() for each in maps):
        panels.legend.add("undefined", Patch(**UNDEFINED))
    if any(each.by_chance.any() for each in maps):
        panels.legend.add_marker("not above chance", BY_CHANCE)
    panels.legend.draw(panels.figure, None if panels.whole else panels.axes[0])
    # Draw once: this moves titles above the names of stages, where the layout needs them.
    panels.figure.draw_without_rendering()


def _draw_similarity_map(
    figure: Figure, axes: Axes, drawn: SimilarityMap, lowest: float
) -> AxesImage:
    across_points, up_points = drawn.across, drawn.up
    across, up = _edges_of_cells(across_points), _edges_of_cells(up_points)
    if np.isnan(drawn.cka).any():
        axes.patch.set(**UNDEFINED)
    # Draw a picture: between separate cells, viewers show thin lines.
    cells = axes.imshow(
        np.ma.masked_invalid(drawn.cka),
        extent=(across[0], across[-1], up[0], up[-1]),
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        cmap=SIMILARITY_COLORS,
        vmin=lowest,
        vmax=1,
    )
    rows, columns = np.nonzero(drawn.by_chance)
    if len(rows):
        middles = [(each[:-1] + each[1:]) / 2 for each in (across, up)]
        axes.plot(middles[0][columns], middles[1][rows], **BY_CHANCE)
    for start in _starts_of_stages(across_points)[1:]:
        axes.axvline(across[start], **BOUNDARY)
    for start in _starts_of_stages(up_points)[1:]:
        axes.axhline(up[start], **BOUNDARY)
    _name_stages(axes.secondary_xaxis("top").xaxis, across, across_points)
    if across_points is not up_points:
        _name_stages(axes.secondary_yaxis("right").yaxis, up, up_points)
    below = offset_copy(axes.get_xaxis_transform(), figure, y=-_MARKS_AT, units="points")
    left = offset_copy(axes.get_yaxis_transform(), figure, x=-_MARKS_AT, units="points")
    _draw_marks_beside(axes.hlines, across, across_points, below)
    _draw_marks_beside(axes.vlines, up, up_points, left)
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


def _similarity_map_to_draw(
    table: str, pairs: pd.DataFrame, across: pd.DataFrame, up: pd.DataFrame, of: str
) -> SimilarityMap:
    """Return sorted pairs of cut points as a map; `of` names models in errors."""
    shape = len(up), len(across)
    if len(pairs) != len(up) * len(across):
        raise VitscopeError(
            f"The {table} table has {len(pairs)} pairs of cut points of the {of}: delete the "
            f"tables and run again."
        )
    cka = pairs["cka"].to_numpy(np.float64).reshape(shape)
    by_chance = (pairs["p"] >= LEVEL).to_numpy(bool).reshape(shape)
    return SimilarityMap(cka, by_chance, across, up)


def plot_cka(table: pd.DataFrame, blocks: pd.DataFrame, members: Members) -> Figure:
    """Draw one map per model: the CKA of all pairs of cut points, and the blocks between them."""
    panels = make_square_panels(len(members), _BAR_WIDTH, _TEXT_HEIGHT, least=LEAST)
    maps = []
    for panel, member in zip(panels.of_models(members, blocks), members, strict=True):
        pairs = table[table["model"] == member.model].sort_values(["index", "other_index"])
        count_rows(pairs, panel.axes)
        of = f"model '{member.model}', which has {len(panel.rows)} cut points"
        maps.append(_similarity_map_to_draw("cka", pairs, panel.rows, panel.rows, of))
    _draw_similarity_maps(panels, maps)
    panels.label("Normalized depth", "Normalized depth")
    return panels.figure


def _depth_label(label: str) -> str:
    words = f"Normalized depth of {label}"
    return fill(words, 30, break_long_words=False, break_on_hyphens=False)


def plot_cka_between(table: pd.DataFrame, blocks: pd.DataFrame, members: Members) -> Figure:
    """Draw one map per pair in the table, in its order: the first model across, the second up."""
    label = {member.model: member.label for member in members}
    pairs = list(table[["model", "other_model"]].drop_duplicates().itertuples(False, None))
    # Names beside a square map make it narrower, and therefore less high.
    panels = make_square_panels(len(pairs), _BAR_WIDTH, _TEXT_HEIGHT - _NAMES_WIDTH)
    maps = []
    for axes, (first, second) in zip(panels.axes, pairs, strict=True):
        across, up = (rows_of(blocks, model, ["index"]) for model in (first, second))
        both = (table["model"] == first) & (table["other_model"] == second)
        rows = table[both].sort_values(["other_index", "index"])
        count_rows(rows, axes)
        of = f"models '{first}' and '{second}', which have {len(across)} and {len(up)}"
        maps.append(_similarity_map_to_draw("cka_between", rows, across, up, of))
        axes.set_xlabel(_depth_label(label[first]))
        axes.set_ylabel(_depth_label(label[second]))
    _draw_similarity_maps(panels, maps)
    return panels.figure
