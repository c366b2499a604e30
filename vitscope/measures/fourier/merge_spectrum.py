"""The variance of feature maps in bands of frequency: means and shares."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.fourier.plane import BANDS, Plane
from vitscope.measures.given import Parts
from vitscope.measures.intervals import spread_of


def _shares(variance: Array) -> Array:
    """Return the share of each band in the sum over the last axis; NaN where that sum is 0."""
    total = variance.sum(axis=-1, keepdims=True)
    result: Array = np.divide(variance, total, out=np.full_like(variance, np.nan), where=total > 0)
    return result


def merge_spectrum(parts: Parts, edges: Sequence[float], resamples: int, seed: int) -> pd.DataFrame:
    """Return each band of a model: its mean variance over all images, its share and the interval.

    A band without components has a variance of 0 and no share. Nor has a band any that is the only
    one with components.
    """
    bands = (table[table["quantity"].isin(BANDS)] for table in parts.tables)
    per_image = pd.concat(bands).pivot(index="image", columns=["index", "quantity"], values="value")
    points = parts.cut_points.sort_values("index")
    columns = pd.MultiIndex.from_product([points["index"], BANDS])
    shape = (len(per_image), len(points), len(BANDS))
    variances = per_image.sort_index()[columns].to_numpy(np.float64)
    sizes = zip(points["height"], points["width"], strict=True)
    components = np.stack([Plane(height, width, edges).components for height, width in sizes])
    mean = variances.reshape(shape).mean(axis=0)
    # Shares are taken of means, in each resample, too.
    ends = spread_of(lambda m: _shares(m.reshape(-1, *shape[1:])), variances, resamples, seed)
    shares = np.stack([_shares(mean), ends.low, ends.high])
    # Where only one band has components, its share is 1 whatever the map is: it tells nothing.
    defined = (components > 0) & ((components > 0).sum(axis=1, keepdims=True) > 1)
    shares[:, ~defined] = np.nan
    means = pd.DataFrame(
        {
            "index": columns.get_level_values(0),
            "images": len(per_image),
            "band": columns.get_level_values(1),
            "above": np.tile([0, *edges], len(points)),
            "up_to": np.tile([*edges, np.sqrt(2)], len(points)),
            "components": components.ravel(),
            "variance": mean.ravel(),
            **dict(zip(("share", "ci_low", "ci_high"), shares.reshape(3, -1), strict=True)),
        }
    )
    return parts.cut_points.merge(means, on="index", validate="one_to_many")
