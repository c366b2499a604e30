"""Numbers of attention: means over the images of all shards, of each head and of all heads."""

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
        # What attends behind the last cut point is shown with it.
        point = points.iloc[min(known["index"], len(points) - 1)]
        place = {name: point[name] for name in ("model", "index", "stage", "depth")}
        tables.append(_of_heads(attention, resamples, seed).assign(**{**known, **place}))
    return pd.concat(tables, ignore_index=True)


def _of_heads(rows: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    """Return a row for each head of an attention, and one for the mean of all."""
    heads = sorted(rows["head"].unique())
    columns: dict[str, object] = {
        "head": pd.array([*heads, None], dtype="Int32"),
        "heads": len(heads),
        "images": rows["image"].nunique(),
    }
    for name in VALUES:
        values = rows.pivot(index="image", columns="head", values=name).sort_index()
        each = np.ascontiguousarray(values.assign(mean=values.mean(axis=1)), np.float64)
        columns[name] = each.mean(axis=0)
        columns[f"{name}_low"], columns[f"{name}_high"] = interval(each, resamples, seed)
    return pd.DataFrame(columns)
