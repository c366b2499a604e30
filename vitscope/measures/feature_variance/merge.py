"""Feature map variance: the mean over the images of all shards, and its interval."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from vitscope.measures.given import Parts
from vitscope.measures.intervals import interval


def mean_variance(shards: Iterable[pd.DataFrame], resamples: int, seed: int) -> pd.DataFrame:
    """Return the mean over the images of all shards and its 95 % interval, for each cut point."""
    per_image = pd.concat(
        shard.pivot(index="image", columns="index", values="variance") for shard in shards
    )
    # How values lie in memory differs between releases of pandas, and sums follow it.
    values = np.ascontiguousarray(per_image.sort_index(), np.float64)
    low, high = interval(values, resamples, seed)
    return pd.DataFrame(
        {
            "index": per_image.columns.to_numpy(),
            "images": len(values),
            "variance": values.mean(axis=0),
            "ci_low": low,
            "ci_high": high,
        }
    )


def merge(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    """Return the variance of a model at each cut point, with what is known of the cut point."""
    merged = mean_variance(parts.tables, resamples, seed)
    return parts.cut_points.merge(merged, on="index", validate="one_to_one")
