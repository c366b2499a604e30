"""CKA between two networks: each cut point of one with each of the other."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.rows import rows_of
from vitscope.drawing.similarity import SimilarityMap, draw_maps, panels_of_maps
from vitscope.errors import VitscopeError

Array = npt.NDArray[Any]

# Characters of a label that are as wide as the smallest panel.
_LINE = 30


def _matrix_of(table: pd.DataFrame, pair: tuple[str, str], shape: tuple[int, int]) -> Array:
    """Return the CKA of a pair, a row for each cut point of the second, NaN where there is none."""
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
    return fill(
        f"Normalized depth of {label}", _LINE, break_long_words=False, break_on_hyphens=False
    )


def plot(
    table: pd.DataFrame,
    blocks: pd.DataFrame,
    members: Sequence[Member],
) -> Figure:
    """Draw one map per pair in the table, in its order: the first model across, the second up."""
    label = {member.model: member.label for member in members}
    pairs = list(table[["model", "other_model"]].drop_duplicates().itertuples(False, None))
    panels = panels_of_maps(len(pairs), between=True)
    maps = []
    for axes, (first, second) in zip(panels.axes, pairs, strict=True):
        across, up = (rows_of(blocks, model, ["index"]) for model in (first, second))
        values = _matrix_of(table, (first, second), (len(up), len(across)))
        maps.append(SimilarityMap(values, up, across))
        axes.set_xlabel(_depth_of(label[first]))
        axes.set_ylabel(_depth_of(label[second]))
    draw_maps(panels, maps, "CKA")
    return panels.figure
