"""CKA of all pairs of cut points: Fig. 10a of the paper."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.similarity import SimilarityMap, draw_maps, panels_of_maps
from vitscope.errors import VitscopeError

Array = npt.NDArray[Any]


def _matrix_of(table: pd.DataFrame, model: str, count: int) -> Array:
    """Return the CKA of `count` cut points as a matrix, NaN where there is none."""
    pairs = table[table["model"] == model].sort_values(["index", "other_index"])
    if len(pairs) != count**2:
        raise VitscopeError(
            f"The cka table has {len(pairs)} pairs of cut points of the model '{model}', which has "
            f"{count} cut points: delete the tables and run again."
        )
    return pairs["cka"].to_numpy(np.float64).reshape(count, count)


def plot(
    table: pd.DataFrame,
    blocks: pd.DataFrame,
    members: Sequence[Member],
) -> Figure:
    """Draw one map per model: the CKA of all pairs of cut points, and what lies between them."""
    panels = panels_of_maps(len(members))
    maps = []
    for panel, member in zip(panels.of_models(members, blocks), members, strict=True):
        values = _matrix_of(table, member.model, len(panel.rows))
        maps.append(SimilarityMap(values, panel.rows))
    panels.label("Normalized depth", "Normalized depth")
    draw_maps(panels, maps, "CKA")
    return panels.figure
