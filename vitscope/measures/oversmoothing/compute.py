import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of_tokens, ratio


def token_similarity(maps: Array) -> Array:
    """Return the mean cosine of all pairs of positions for each image of (N, C, H, W)."""
    images, channels, height, width = maps.shape
    tokens = maps.reshape(images, channels, height * width).astype(np.float64)
    norms = np.sqrt(np.einsum("ncp,ncp->np", tokens, tokens))
    there = norms > 0
    tokens /= np.where(there, norms, 1)[:, None]
    total = tokens.sum(axis=2)
    pairs = np.vecdot(total, total) - there.sum(axis=1)
    positions = height * width
    result: Array = pairs / (positions * (positions - 1))
    return result


def measure_token_similarity(given: OnLatents) -> pd.DataFrame:
    return part_of_tokens(given, token_similarity, "similarity")


def mean_token_share(maps: Array) -> Array:
    """Return the share of the mean token in the energy of each image, 0 if all tokens are zeros.

    `maps` are (N, C, H, W).
    """
    energy = np.einsum("nchw,nchw->n", maps, maps, dtype=np.float64)
    means = maps.mean(axis=(2, 3), dtype=np.float64)
    of_mean = np.vecdot(means, means) * (maps.shape[2] * maps.shape[3])
    return ratio(of_mean, energy, 0)


def measure_mean_token(given: OnLatents) -> pd.DataFrame:
    return part_of_tokens(given, mean_token_share, "share")
