import numpy as np
import pandas as pd

from vitscope.claims.intervals import without_resamples
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import ratio
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.per_image import image_means_by_cut_point, measure_per_image
from vitscope.measures.slices import measure_slices
from vitscope.measures.tokens.measure import QUANTILES


def token_norms(maps: Array) -> Array:
    """Return the norms (N, H * W) of the tokens of maps (N, C, H, W)."""
    tokens = maps.reshape(*maps.shape[:2], -1).astype(np.float64)
    result: Array = np.sqrt(np.einsum("ncp,ncp->np", tokens, tokens))
    return result


def find_outliers(norms: Array, threshold: float) -> Array:
    """Return for each token whether its norm exceeds `threshold` times the median of its image."""
    return norms > threshold * np.median(norms, axis=1, keepdims=True)


def measure_token_norms(given: OnLatents, threshold: float) -> pd.DataFrame:
    latents = given.latents
    norms = measure_slices(given, dict.fromkeys(latents.names, token_norms))
    tables = []
    for index, name in enumerate(latents.names):
        found = norms[name]
        quantiles = np.quantile(found, list(QUANTILES.values()), axis=1)
        numbers = np.arange(given.first_image, given.first_image + len(found))
        columns = {"index": index, "image": numbers, **dict(zip(QUANTILES, quantiles, strict=True))}
        positions = [np.flatnonzero(row) for row in find_outliers(found, threshold)]
        tables.append(pd.DataFrame(columns).assign(positions=pd.Series(positions)))
    return pd.concat(tables, ignore_index=True)


def merge_token_norms(parts: Parts, threshold: float, resamples: int, seed: int) -> pd.DataFrame:
    # Sort, so that the rounding of sums does not depend on the shards.
    per_image = pd.concat(parts.tables).sort_values(["index", "image"], ignore_index=True)
    points = parts.cut_points.sort_values("index", ignore_index=True)
    tokens = (points["height"] * points["width"]).set_axis(points["index"])
    per_image["outliers"] = per_image["positions"].map(len) / per_image["index"].map(tokens)
    of_images = per_image.groupby("index")[list(QUANTILES)].mean()
    shares = image_means_by_cut_point([per_image], "outliers", resamples, seed)
    where = [
        _outlier_shares_by_position(
            per_image.loc[per_image["index"] == index, "positions"], tokens[index]
        )
        for index in points["index"]
    ]
    merged = points.merge(of_images, left_on="index", right_index=True, validate="one_to_one")
    merged = merged.merge(without_resamples(shares), on="index", validate="one_to_one")
    return merged.assign(threshold=threshold, positions=pd.Series(where))


def _outlier_shares_by_position(positions: pd.Series, tokens: int) -> list[float]:
    """Return for each position the share of images whose token there is an outlier."""
    counts = np.zeros(tokens)
    for found in positions:
        counts[np.asarray(found, np.int64)] += 1
    shares: list[float] = (counts / len(positions)).tolist()
    return shares


def token_similarity(maps: Array) -> Array:
    """Return the mean cosine of all pairs of tokens for each image of maps (N, C, H, W)."""
    tokens, norms = maps.reshape(*maps.shape[:2], -1).astype(np.float64), token_norms(maps)
    there = norms > 0
    tokens /= np.where(there, norms, 1)[:, None]
    total = tokens.sum(axis=2)
    pairs = np.vecdot(total, total) - there.sum(axis=1)
    positions = tokens.shape[2]
    result: Array = pairs / (positions * (positions - 1))
    return result


def measure_token_similarity(given: OnLatents) -> pd.DataFrame:
    return measure_per_image(given, token_similarity, "similarity")


def mean_token_share(maps: Array) -> Array:
    """Return the share of the mean token in the energy of each image of maps (N, C, H, W).

    It is 0 if all tokens are zero.
    """
    energy = np.einsum("nchw,nchw->n", maps, maps, dtype=np.float64)
    means = maps.mean(axis=(2, 3), dtype=np.float64)
    of_mean = np.vecdot(means, means) * (maps.shape[2] * maps.shape[3])
    return ratio(of_mean, energy, 0)


def measure_mean_token(given: OnLatents) -> pd.DataFrame:
    return measure_per_image(given, mean_token_share, "share")
