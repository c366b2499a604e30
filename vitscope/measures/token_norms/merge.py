"""Norms of tokens: means over the images of all shards, and the share of outliers."""

import numpy as np
import pandas as pd

from vitscope.measures.columns import without_resamples
from vitscope.measures.given import Parts
from vitscope.measures.per_image import means
from vitscope.measures.token_norms.table import QUANTILES


def merge_token_norms(parts: Parts, threshold: float, resamples: int, seed: int) -> pd.DataFrame:
    """Return the norms of a model at each cut point, and how many of its tokens are outliers."""
    # In one order, however the work was cut: sums follow it.
    per_image = pd.concat(parts.tables).sort_values(["index", "image"], ignore_index=True)
    points = parts.cut_points.sort_values("index", ignore_index=True)
    tokens = (points["height"] * points["width"]).set_axis(points["index"])
    per_image["outliers"] = per_image["positions"].map(len) / per_image["index"].map(tokens)
    of_images = per_image.groupby("index")[list(QUANTILES)].mean()
    shares = means([per_image], "outliers", resamples, seed)
    where = [
        _shares_of(per_image.loc[per_image["index"] == index, "positions"], tokens[index])
        for index in points["index"]
    ]
    merged = points.merge(of_images, left_on="index", right_index=True, validate="one_to_one")
    merged = merged.merge(without_resamples(shares), on="index", validate="one_to_one")
    return merged.assign(threshold=threshold, positions=pd.Series(where))


def _shares_of(positions: pd.Series, tokens: int) -> list[float]:
    """Return in which share of the images the token at each position is an outlier."""
    counts = np.zeros(tokens)
    for found in positions:
        counts[np.asarray(found, np.int64)] += 1
    shares: list[float] = (counts / len(positions)).tolist()
    return shares
