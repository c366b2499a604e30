"""The singular values of the tokens of each image, and the means of its tokens."""

from functools import partial

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents
from vitscope.measures.singular_values.spectra import (
    effective_rank,
    log_ratios,
    most,
    singular_values,
)
from vitscope.measures.slices import measure_slices


def taken(positions: int, channels: int, tokens: int, seed: int) -> Array:
    """Return which positions of a map are taken: all, or where it is large, some at random."""
    if min(positions, channels) <= tokens:
        return np.arange(positions)
    return np.sort(np.random.default_rng(seed).permutation(positions)[:tokens])


def spectra_of(maps: Array, chosen: Array) -> Array:
    """Return for each image of (N, C, H, W) its effective rank, log ratios and mean token.

    They stand side by side: (N, 1 + K + C); of a map of one position, that is 0 and the token.
    """
    images, channels = maps.shape[:2]
    tokens = maps.reshape(images, channels, -1).astype(np.float64)
    values = singular_values(tokens[:, :, chosen].transpose(0, 2, 1))
    rank = effective_rank(values)[:, None]
    return np.concatenate([rank, log_ratios(values), tokens.mean(axis=2)], axis=1)


def measure_singular_values(given: OnLatents, tokens: int, seed: int) -> pd.DataFrame:
    """Return the spectrum of the tokens of every image of a shard, and its pooled vector."""
    latents = given.latents
    shapes = {name: latents.shape(name)[1:] for name in latents.names}
    chosen = {
        name: taken(height * width, channels, tokens, seed)
        for name, (channels, height, width) in shapes.items()
    }
    measures = {name: partial(spectra_of, chosen=which) for name, which in chosen.items()}
    found = measure_slices(given, measures)
    tables = []
    for index, name in enumerate(latents.names):
        values, count = found[name], len(chosen[name])
        ranks, ratios, pooled = np.split(values, [1, 1 + most(count, shapes[name][0])], axis=1)
        columns = {
            "index": index,
            "image": np.arange(given.first_image, given.first_image + len(values)),
            "tokens": count,
            "effective_rank": ranks[:, 0] if count > 1 else np.nan,
            "log_ratios": list(ratios),
            "pooled": list(pooled),
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)
