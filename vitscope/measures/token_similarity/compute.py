"""The mean cosine similarity of all pairs of tokens of an image, in closed form.

The sum of the cosines of all pairs is the squared norm of the sum of the normalized tokens: no
matrix of pairs is needed.
"""

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.per_image import part_of
from vitscope.measures.slices import measure_slices


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


def measure(given: OnLatents) -> pd.DataFrame:
    """Return the similarity of the tokens of every image of a shard at every cut point."""
    latents = given.latents
    several = [name for name in latents.names if np.prod(latents.shape(name)[2:]) > 1]
    measures = dict.fromkeys(several, lambda maps: token_similarity(maps)[:, None])
    values = measure_slices(latents, measures, given.first_image, given.threads)
    none = {name: np.full((latents.shape(name)[0], 1), np.nan) for name in latents.names}
    found = [(none | values)[name][:, 0] for name in latents.names]
    return part_of(found, given.first_image, "similarity")
