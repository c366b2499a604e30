"""The variance of feature maps over space, averaged over channels, for each image."""

from typing import Any

import numpy as np
import pandas as pd

from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of_tokens


def spatial_variance(maps: Any) -> Any:
    """Return the unbiased variance over space for each image of (N, C, H, W), mean over channels.

    It takes arrays or tensors, of maps of more than one pixel.
    """
    if not isinstance(maps, np.ndarray):
        return maps.float().var((2, 3)).double().mean(1)
    images, channels, height, width = maps.shape
    pixels = height * width
    flat = maps.reshape(images * channels, pixels)
    means = np.vecdot(flat, np.ones(pixels, np.float32)) / pixels
    # A subtraction that broadcasts would take longer.
    centred = np.repeat(means, pixels).reshape(flat.shape)
    np.subtract(flat, centred, out=centred)
    squares = np.vecdot(centred, centred).reshape(images, channels)
    return squares.mean(axis=1, dtype=np.float64) / (pixels - 1)


def measure(given: OnLatents) -> pd.DataFrame:
    return part_of_tokens(given, spatial_variance, "variance", on_gpu=True)
