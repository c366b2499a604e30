"""Numbers of attention: means over the images of all shards, of each head and of all heads."""

import pandas as pd

from vitscope.measures.attention.heads import BOTH, MEAN_OF_HEADS, of_heads, place_of
from vitscope.measures.attention.table import PART, VALUES
from vitscope.measures.given import Parts

# What claims are about.
_CLAIMED = {"distance": MEAN_OF_HEADS, "distance_renormalized": BOTH, "nmi": MEAN_OF_HEADS}
# What is the same for all images and heads of an attention.
_OF_ATTENTION = [each for each in PART.columns if each not in ("image", "head", *VALUES)]


def merge_attention(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    """Return the numbers of each head and of their mean, with where in the network they are."""
    rows = pd.concat(parts.tables, ignore_index=True)
    points = parts.cut_points.sort_values("index", ignore_index=True)
    tables = []
    for _, attention in rows.groupby("attention"):
        known = attention.iloc[0][_OF_ATTENTION]
        place = place_of(points, known["index"])
        table = of_heads(attention, VALUES, _CLAIMED, resamples, seed)
        tables.append(table.assign(**{**known, **place}))
    return pd.concat(tables, ignore_index=True)
