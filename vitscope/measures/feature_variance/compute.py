"""The variance of feature maps over space, averaged over channels, for each image."""

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.files.tensors import TensorFile, as_float, checksum
from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of

# Maps are copied out of the memory map in slices, each small enough for the L2 cache.
SLICE_BYTES = 1 << 20


def spatial_variance(maps: Array) -> Array:
    """Return the unbiased variance over space for each image of (N, C, H, W), mean over channels.

    It is NaN for maps of a single pixel.
    """
    images, channels, height, width = maps.shape
    pixels = height * width
    if pixels == 1:
        return np.full(images, np.nan)
    flat = maps.reshape(images * channels, pixels).astype(np.float32)
    ones = np.ones(pixels, np.float32)
    flat -= (np.vecdot(flat, ones) / pixels)[:, None]
    squares = np.vecdot(flat, flat).reshape(images, channels)
    result: Array = squares.mean(axis=1, dtype=np.float64) / (pixels - 1)
    return result


def _variance_of(latents: TensorFile, name: str) -> Array:
    maps, dtype = latents.mapped(name), latents.dtype(name)
    step = max(1, SLICE_BYTES // max(1, maps[0].nbytes))
    values, total = [], 0
    for first in range(0, len(maps), step):
        some = maps[first : first + step]
        total += checksum(some, first)
        values.append(spatial_variance(as_float(some, dtype)))
    latents.check(name, total)
    return np.concatenate(values)


def shard_variance(latents: TensorFile, first_image: int) -> pd.DataFrame:
    """Return the variance of every image of a shard at every cut point.

    `first_image` is the position of the shard's first image among those measured.
    """
    values = [_variance_of(latents, name) for name in latents.names]
    return part_of(values, first_image, "variance")


def measure(given: OnLatents) -> pd.DataFrame:
    return shard_variance(given.latents, given.first_image)
