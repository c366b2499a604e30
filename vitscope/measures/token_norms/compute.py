"""The norms of the tokens of each image, and which of them are outliers."""

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.slices import measure_slices
from vitscope.measures.token_norms.table import QUANTILES


def token_norms(maps: Array) -> Array:
    """Return the norm of each position for each image of (N, C, H, W): (N, H * W)."""
    images, channels, height, width = maps.shape
    tokens = maps.reshape(images, channels, height * width).astype(np.float64)
    result: Array = np.sqrt(np.einsum("ncp,ncp->np", tokens, tokens))
    return result


def outliers(norms: Array, threshold: float) -> Array:
    """Tell of each token whether its norm is above so many times the median of its image."""
    return norms > threshold * np.median(norms, axis=1, keepdims=True)


def measure_token_norms(given: OnLatents, threshold: float) -> pd.DataFrame:
    """Return the quantiles of every image of a shard, and where its outliers are."""
    latents = given.latents
    norms = measure_slices(given, dict.fromkeys(latents.names, token_norms))
    tables = []
    for index, name in enumerate(latents.names):
        found = norms[name]
        quantiles = np.quantile(found, list(QUANTILES.values()), axis=1)
        numbers = np.arange(given.first_image, given.first_image + len(found))
        columns = {"index": index, "image": numbers, **dict(zip(QUANTILES, quantiles, strict=True))}
        positions = [np.flatnonzero(row) for row in outliers(found, threshold)]
        tables.append(pd.DataFrame(columns).assign(positions=pd.Series(positions)))
    return pd.concat(tables, ignore_index=True)
