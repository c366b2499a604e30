"""What the spatial share is merged from: of each image its variance over space, and its means."""

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of
from vitscope.measures.slices import measure_slices


def moments(maps: Array) -> Array:
    """Return for each image of (N, C, H, W) its variance over space, and its mean of each channel.

    The variance is over all positions, not unbiased, and the mean over channels: (N, 1 + C).
    """
    images, channels, height, width = maps.shape
    flat = maps.reshape(images, channels, height * width)
    means = flat.mean(axis=2, dtype=np.float64)
    centred = flat - means[:, :, None].astype(np.float32)
    # What rounding of the means leaves.
    rest = centred.mean(axis=2, dtype=np.float64)
    squares = np.vecdot(centred, centred, dtype=np.float64) / (height * width)
    return np.column_stack([(squares - rest**2).mean(axis=1), means])


def measure_spatial_share(given: OnLatents) -> pd.DataFrame:
    """Return the moments of every image of a shard at every cut point."""
    names = given.latents.names
    measures = dict.fromkeys(names, moments)
    found = measure_slices(given, measures)
    part = part_of([found[name][:, 0] for name in names], given.first_image, "within")
    return part.assign(means=[row for name in names for row in found[name][:, 1:]])
