"""CKA of all pairs of cut points, Fig. 10a of the paper, and of the cut points of two networks."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.similarity import SimilarityMap, draw_maps, panels_of_maps
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array


def _matrix_of(table: pd.DataFrame, model: str, count: int) -> Array:
    """Return the CKA of `count` cut points as a matrix, with NaN for missing pairs."""
    pairs = table[table["model"] == model].sort_values(["index", "other_index"])
    if len(pairs) != count**2:
        raise VitscopeError(
            f"The cka table has {len(pairs)} pairs of cut points of the model '{model}', which has "
            f"{count} cut points: delete the tables and run again."
        )
    return pairs["cka"].to_numpy(np.float64).reshape(count, count)


def plot_cka(table: pd.DataFrame, blocks: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one map per model: the CKA of all pairs of cut points, and what lies between them."""
    panels = panels_of_maps(len(members))
    maps = []
    for panel, member in zip(panels.of_models(members, blocks), members, strict=True):
        values = _matrix_of(table, member.model, len(panel.rows))
        maps.append(SimilarityMap(values, panel.rows))
    draw_maps(panels, maps, "CKA")
    panels.label("Normalized depth", "Normalized depth")
    return panels.figure


def _matrix_between(table: pd.DataFrame, pair: tuple[str, str], shape: tuple[int, int]) -> Array:
    """Return the CKA of two models, a row for each cut point of the second; NaN if missing."""
    of_pair = (table["model"] == pair[0]) & (table["other_model"] == pair[1])
    rows = table[of_pair].sort_values(["other_index", "index"])
    if len(rows) != shape[0] * shape[1]:
        raise VitscopeError(
            f"The cka_between table has {len(rows)} pairs of cut points of the models '{pair[0]}' "
            f"and '{pair[1]}', which have {shape[1]} and {shape[0]}: delete the tables and run "
            "again."
        )
    return rows["cka"].to_numpy(np.float64).reshape(shape)


def _depth_of(label: str) -> str:
    """Break the label of an axis into lines no wider than the smallest panel."""
    words = f"Normalized depth of {label}"
    return fill(words, 30, break_long_words=False, break_on_hyphens=False)


def plot_cka_between(
    table: pd.DataFrame, blocks: pd.DataFrame, members: Sequence[Member]
) -> Figure:
    """Draw one map per pair in the table, in its order: the first model across, the second up."""
    label = {member.model: member.label for member in members}
    pairs = list(table[["model", "other_model"]].drop_duplicates().itertuples(False, None))
    panels = panels_of_maps(len(pairs), between=True)
    maps = []
    for axes, (first, second) in zip(panels.axes, pairs, strict=True):
        across, up = (rows_of(blocks, model, ["index"]) for model in (first, second))
        values = _matrix_between(table, (first, second), (len(up), len(across)))
        maps.append(SimilarityMap(values, up, across))
        axes.set_xlabel(_depth_of(label[first]))
        axes.set_ylabel(_depth_of(label[second]))
    draw_maps(panels, maps, "CKA")
    return panels.figure
