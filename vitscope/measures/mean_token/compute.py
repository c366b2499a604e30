"""The share of the mean token in the energy of all tokens of an image."""

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of_tokens


def mean_token_share(maps: Array) -> Array:
    """Return the share for each image of (N, C, H, W); 0 where all tokens are zeros."""
    energy = np.einsum("nchw,nchw->n", maps, maps, dtype=np.float64)
    means = maps.mean(axis=(2, 3), dtype=np.float64)
    of_mean = np.vecdot(means, means) * (maps.shape[2] * maps.shape[3])
    result: Array = np.divide(of_mean, energy, out=np.zeros(len(maps)), where=energy > 0)
    return result


def measure_mean_token(given: OnLatents) -> pd.DataFrame:
    """Return the share of the mean token in every image of a shard at every cut point."""
    return part_of_tokens(given, mean_token_share, "share")
