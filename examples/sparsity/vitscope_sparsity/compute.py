"""The share of small values in feature maps."""

from functools import partial

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of
from vitscope.measures.slices import measure_slices


def share_of_small(maps: Array, threshold: float) -> Array:
    """Return the share of small values of each image of (N, C, H, W), as (N, 1)."""
    sizes = np.abs(maps.reshape(len(maps), -1))
    root_mean_square = np.sqrt(np.mean(sizes**2, axis=1, dtype=np.float64))
    share: Array = (sizes < threshold * root_mean_square[:, None]).mean(axis=1, keepdims=True)
    return share


def measure_sparsity(given: OnLatents, threshold: float) -> pd.DataFrame:
    """Return the share of every image of a shard at every cut point."""
    share = partial(share_of_small, threshold=threshold)
    found = measure_slices(given, dict.fromkeys(given.latents.names, share))
    return part_of([each[:, 0] for each in found.values()], given.first_image, "share")
