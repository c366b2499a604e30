"""The mean cosine similarity of all pairs of tokens of an image, in closed form.

The sum of the cosines of all pairs is the squared norm of the sum of the normalized tokens: no
matrix of pairs is needed.
"""

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of_tokens


def token_similarity(maps: Array) -> Array:
    """Return the mean cosine of all pairs of positions for each image of (N, C, H, W).

    A token of zeros has nothing in common with any other.
    """
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
    """Return the similarity of the tokens of every image of a shard at every cut point."""
    return part_of_tokens(given, token_similarity, "similarity")
