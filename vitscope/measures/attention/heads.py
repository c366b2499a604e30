"""Rows of a table of attention: each head, the mean of all, and where in the network it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.measures.columns import RESAMPLED
from vitscope.measures.intervals import spread

# Which rows keep their resamples: those of each head, that of the mean of all, or both.
EACH_HEAD, MEAN_OF_HEADS, BOTH = slice(0, -1), slice(-1, None), slice(None)


def place_of(points: pd.DataFrame, index: int) -> dict[str, Any]:
    """Return where attention before a cut point is; the cut points are in order."""
    # What attends behind the last cut point is shown with it.
    point = points.iloc[min(index, len(points) - 1)]
    return {name: point[name] for name in ("model", "index", "stage", "depth")}


def of_heads(
    rows: pd.DataFrame,
    names: Sequence[str],
    claimed: Mapping[str, slice],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return a row for each head of an attention, and one for the mean of all.

    The columns of these names are averaged over images; of those that are `claimed` some rows keep
    their resamples.
    """
    heads = sorted(rows["head"].unique())
    columns: dict[str, Any] = {
        "head": pd.array([*heads, None], dtype="Int32"),
        "heads": len(heads),
        "images": rows["image"].nunique(),
    }
    for name in names:
        values = rows.pivot(index="image", columns="head", values=name).sort_index()
        each = np.ascontiguousarray(values.assign(mean=values.mean(axis=1)), np.float64)
        columns[name] = each.mean(axis=0)
        columns |= spread(each, resamples, seed).columns(name, name)
        lists = columns.pop(f"{name}{RESAMPLED}")
        if name in claimed:
            kept = range(len(lists))[claimed[name]]
            columns[f"{name}{RESAMPLED}"] = [
                each if row in kept else None for row, each in enumerate(lists)
            ]
    return pd.DataFrame(columns)
