"""Numbers of attention: means over the images of all shards, of each head and of all heads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.measures.attention.table import PART, VALUES
from vitscope.measures.given import Parts
from vitscope.measures.intervals import interval

# What is the same for all images and heads of an attention.
_OF_ATTENTION = [each for each in PART.columns if each not in ("image", "head", *VALUES)]


def merge(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    """Return the numbers of each head and of their mean, with where in the network they are."""
    rows = pd.concat(parts.tables, ignore_index=True)
    points = parts.cut_points.sort_values("index", ignore_index=True)
    tables = []
    for _, attention in rows.groupby("attention"):
        known = attention.iloc[0][_OF_ATTENTION]
        place = place_of(points, known["index"])
        tables.append(of_heads(attention, VALUES, resamples, seed).assign(**{**known, **place}))
    return pd.concat(tables, ignore_index=True)


def place_of(points: pd.DataFrame, index: int) -> dict[str, Any]:
    """Return where attention before a cut point is; the cut points are in order."""
    # What attends behind the last cut point is shown with it.
    point = points.iloc[min(index, len(points) - 1)]
    return {name: point[name] for name in ("model", "index", "stage", "depth")}


def of_heads(rows: pd.DataFrame, names: Sequence[str], resamples: int, seed: int) -> pd.DataFrame:
    """Return a row for each head of an attention, and one for the mean of all.

    The columns of these names are averaged over images.
    """
    heads = sorted(rows["head"].unique())
    columns: dict[str, object] = {
        "head": pd.array([*heads, None], dtype="Int32"),
        "heads": len(heads),
        "images": rows["image"].nunique(),
    }
    for name in names:
        values = rows.pivot(index="image", columns="head", values=name).sort_index()
        each = np.ascontiguousarray(values.assign(mean=values.mean(axis=1)), np.float64)
        columns[name] = each.mean(axis=0)
        columns[f"{name}_low"], columns[f"{name}_high"] = interval(each, resamples, seed)
    return pd.DataFrame(columns)
