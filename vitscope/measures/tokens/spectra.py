"""Singular values of centred vectors, and the rank and spectrum that follow from them.

Singular values are computed as roots of the eigenvalues of the smaller matrix of inner products, in
float64. This takes a fifth of the time of a singular value decomposition and loses half of the
digits, which leaves the precision of float32.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.per_image import image_means_by_cut_point
from vitscope.measures.slices import measure_slices
from vitscope.measures.tokens.measure import FLOOR, IMAGES, TOKENS

# Vectors count as equal if subtracting their mean leaves at most this share of their norm.
ALIKE = float(np.finfo(np.float32).eps)


def largest_rank(vectors: int, channels: int) -> int:
    """Return the largest possible number of nonzero singular values after centring `vectors`."""
    return max(min(vectors - 1, channels), 0)


def singular_values(vectors: Array) -> Array:
    """Return the singular values of vectors (..., count, C) after subtracting their mean.

    They are 0 where all vectors are equal, and NaN where a product of vectors is not finite.
    """
    centred = vectors - vectors.mean(axis=-2, keepdims=True)
    count, channels = vectors.shape[-2:]
    turned = np.swapaxes(centred, -1, -2)
    products = centred @ turned if count < channels else turned @ centred
    left, whole = np.square(centred).sum((-2, -1)), np.square(vectors).sum((-2, -1))
    spoiled = ~np.isfinite(products).all((-2, -1))
    products[spoiled | (left <= ALIKE**2 * whole)] = 0
    squares = np.linalg.eigvalsh(products)[..., ::-1][..., : largest_rank(count, channels)]
    values: Array = np.sqrt(squares.clip(min=0))
    values[spoiled] = np.nan
    return values


def effective_rank(values: Array) -> Array:
    """Return the exponential of the entropy of singular values (..., K), or 0 if all are 0."""
    total = values.sum(axis=-1, keepdims=True)
    share = values / np.where(total == 0, 1, total)
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=-1)
    return np.where(total[..., 0] == 0, 0, np.exp(entropy))


def log_ratios(values: Array) -> Array:
    """Return the logarithm of each singular value divided by the first; 0 if all are 0."""
    first = values[..., :1]
    ratios = values / np.where(first == 0, 1, first)
    return np.where(first == 0, 0, np.log(np.maximum(ratios, FLOOR)))


def choose_positions(positions: int, channels: int, tokens: int, seed: int) -> Array:
    """Return the positions to use: all or, if the map is large, `tokens` of them at random."""
    if min(positions, channels) <= tokens:
        return np.arange(positions)
    return np.sort(np.random.default_rng(seed).permutation(positions)[:tokens])


def rank_spectrum_and_mean(maps: Array, chosen: Array) -> Array:
    """Return (N, 1 + K + C): the rank, K log ratios and the mean token of each map (N, C, H, W)."""
    images, channels = maps.shape[:2]
    tokens = maps.reshape(images, channels, -1).astype(np.float64)
    values = singular_values(tokens[:, :, chosen].transpose(0, 2, 1))
    rank = effective_rank(values)[:, None]
    return np.concatenate([rank, log_ratios(values), tokens.mean(axis=2)], axis=1)


def measure_singular_values(given: OnLatents, tokens: int, seed: int) -> pd.DataFrame:
    latents = given.latents
    shapes = {name: latents.shape(name)[1:] for name in latents.names}
    chosen = {
        name: choose_positions(height * width, channels, tokens, seed)
        for name, (channels, height, width) in shapes.items()
    }
    measures = {
        name: partial(rank_spectrum_and_mean, chosen=which) for name, which in chosen.items()
    }
    found = measure_slices(given, measures)
    tables = []
    for index, name in enumerate(latents.names):
        values, count = found[name], len(chosen[name])
        ranks, ratios, pooled = np.split(
            values, [1, 1 + largest_rank(count, shapes[name][0])], axis=1
        )
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


def merge_singular_values(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    per_image = pd.concat(parts.tables, ignore_index=True)
    # Sort, so that the rounding of sums does not depend on the shards.
    ordered = per_image.sort_values(["index", "image"], ignore_index=True)
    ranks = image_means_by_cut_point([ordered], "effective_rank", resamples, seed)
    at = ordered.groupby("index")
    tokens = ranks.merge(pd.DataFrame(_spectrum_of_tokens(*each) for each in at), on="index")
    images = pd.DataFrame(_spectrum_of_images(*each) for each in at)
    both = pd.concat([tokens, images], ignore_index=True).sort_values("index", kind="stable")
    return parts.cut_points.merge(both, on="index", validate="one_to_many")


def _spectrum_of_tokens(index: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Return a row with the mean spectrum of tokens over the images whose rank is not 0."""
    with_spectrum = rows.loc[rows["effective_rank"] > 0, "log_ratios"]
    ratios = np.stack(with_spectrum.to_list()).mean(axis=0) if len(with_spectrum) else []
    vectors, channels = int(rows["tokens"].iloc[0]), len(rows["pooled"].iloc[0])
    return {
        "index": index,
        "of": TOKENS,
        "vectors": vectors,
        "most": largest_rank(vectors, channels),
        "log_ratios": [*ratios],
    }


def _spectrum_of_images(index: Any, rows: pd.DataFrame) -> dict[str, Any]:
    pooled = np.stack(rows["pooled"].to_list())
    values = singular_values(pooled)
    alone = len(pooled) == 1
    return {
        "index": index,
        "images": len(pooled),
        "of": IMAGES,
        "vectors": len(pooled),
        "most": largest_rank(*pooled.shape),
        "effective_rank": np.nan if alone else float(effective_rank(values)),
        "log_ratios": [*log_ratios(values)] if values.any() else [],
    }
