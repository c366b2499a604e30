"""Rows of attention tables: one for each head, and one for the mean of all heads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.intervals import RESAMPLED
from vitscope.measures.attention.measure import ATTENTION_PART, VALUES
from vitscope.measures.bootstrap import spread
from vitscope.measures.given import Parts

# Slices of an attention's rows (each head, then the mean of heads): the rows that keep resamples.
EACH_HEAD = slice(0, -1)
MEAN_OF_HEADS = slice(-1, None)
BOTH = slice(None)


def place_of_attention(points: pd.DataFrame, index: int) -> dict[str, Any]:
    """Return where an attention lies: model, index, stage and depth of the cut point after it.

    `points` must be sorted by index.
    """
    # Attention after the last cut point is placed at the last cut point.
    point = points.iloc[min(index, len(points) - 1)]
    return {name: point[name] for name in ("model", "index", "stage", "depth")}


def average_heads(
    rows: pd.DataFrame,
    names: Sequence[str],
    claimed: Mapping[str, slice],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Average the columns `names` over images: a row for each head, and one for their mean.

    `claimed` maps columns to the rows that keep their resamples.
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


# Maps each column that claims are about to the rows that these claims read.
_CLAIMED = {"distance": MEAN_OF_HEADS, "distance_renormalized": BOTH, "nmi": MEAN_OF_HEADS}
# The columns that are equal for all images and heads of an attention.
_OF_ATTENTION = [each for each in ATTENTION_PART.columns if each not in ("image", "head", *VALUES)]


def merge_attention(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    rows = pd.concat(parts.tables, ignore_index=True)
    points = parts.cut_points.sort_values("index", ignore_index=True)
    tables = []
    for _, attention in rows.groupby("attention"):
        known = attention.iloc[0][_OF_ATTENTION]
        place = place_of_attention(points, known["index"])
        table = average_heads(attention, VALUES, _CLAIMED, resamples, seed)
        tables.append(table.assign(**{**known, **place}))
    return pd.concat(tables, ignore_index=True)
