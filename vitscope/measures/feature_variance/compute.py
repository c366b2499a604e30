from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.intervals import RESAMPLED
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import spread_of
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.per_image import measure_per_image, part_of
from vitscope.measures.slices import measure_slices


def spatial_variance(maps: Any) -> Any:
    """Return the unbiased variance over space of `maps` (N, C, H, W), mean over channels: (N,)."""
    if not isinstance(maps, np.ndarray):
        return maps.float().var((2, 3)).double().mean(1)
    images, channels, height, width = maps.shape
    pixels = height * width
    flat = maps.reshape(images * channels, pixels)
    means = np.vecdot(flat, np.ones(pixels, np.float32)) / pixels
    # Repeat the means, since a subtraction that broadcasts is slower.
    centred = np.repeat(means, pixels).reshape(flat.shape)
    np.subtract(flat, centred, out=centred)
    squares = np.vecdot(centred, centred).reshape(images, channels)
    return squares.mean(axis=1, dtype=np.float64) / (pixels - 1)


def measure_feature_variance(given: OnLatents) -> pd.DataFrame:
    return measure_per_image(given, spatial_variance, "variance", on_gpu=True)


def normalized_variance(maps: Any) -> Any:
    """Return the variance over space of `maps` (N, C, H, W) behind a norm over channels: (N,).

    The norm is a LayerNorm without weights at each position. A position whose channels are all
    equal becomes 0.
    """
    whole = maps.astype(np.float64) if isinstance(maps, np.ndarray) else maps.double()
    flat = whole.reshape(*whole.shape[:2], -1)
    centred = flat - flat.mean(1)[:, None]
    deviation = (centred**2).mean(1) ** 0.5
    constant = deviation == 0
    # Each position has a mean square of 1 over channels, or of 0 if it is constant.
    square = 1 - (constant + 0.0).mean(1)
    mean = (centred / (deviation + constant)[:, None]).mean(2)
    positions = flat.shape[2]
    return (square - (mean**2).mean(1)) * (positions / (positions - 1))


def measure_normalized_variance(given: OnLatents) -> pd.DataFrame:
    return measure_per_image(given, normalized_variance, "normalized_variance", on_gpu=True)


def variance_and_means(maps: Array) -> Array:
    """Return the variance over space and the channel means of each image of `maps` (N, C, H, W).

    The variance is the biased one over all positions, averaged over channels. It is the first
    column of the result (N, 1 + C); the means are the other columns.
    """
    images, channels, height, width = maps.shape
    flat = maps.reshape(images, channels, height * width)
    means = flat.mean(axis=2, dtype=np.float64)
    centred = flat - means[:, :, None].astype(np.float32)
    # The subtracted means were rounded, so that the mean of the difference is not exactly 0.
    rest = centred.mean(axis=2, dtype=np.float64)
    squares = np.vecdot(centred, centred, dtype=np.float64) / (height * width)
    return np.column_stack([(squares - rest**2).mean(axis=1), means])


def measure_spatial_share(given: OnLatents) -> pd.DataFrame:
    names = given.latents.names
    found = measure_slices(given, dict.fromkeys(names, variance_and_means))
    part = part_of([found[name][:, 0] for name in names], given.first_image, "within")
    return part.assign(means=[row for name in names for row in found[name][:, 1:]])


def _variance_within_and_total(means: Array) -> tuple[Array, Array]:
    """Return the variance within images and the total variance, from means over images.

    The columns of `means` are the variance within an image, the mean square of the channel means,
    and the mean of each channel.
    """
    within, square, channels = means[:, 0], means[:, 1], means[:, 2:]
    return within, within + square - (channels**2).mean(axis=1)


def spatial_variance_share(
    within: Array, means: Array, resamples: int, seed: int
) -> dict[str, float]:
    """Return what the table `spatial_share` has in the row of a cut point.

    `within` (N,) is the variance within each image, and `means` (N, C) are its channel means.
    """
    # Subtract the means over images, so that squares are not much larger than the variance.
    about = means - means.mean(axis=0)
    moments = np.column_stack([within, (about**2).mean(axis=1), about])
    (inside,), (total,) = _variance_within_and_total(moments.mean(axis=0, keepdims=True))
    found = {"images": len(within), "within": inside, "total": total}
    if not total:
        return found
    spread = spread_of(
        lambda each: np.divide(*_variance_within_and_total(each))[:, None], moments, resamples, seed
    )
    lists = {name: each[0] for name, each in spread.columns("share").items()}
    return found | {"share": inside / total} | lists


def merge_spatial_share(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    points = parts.cut_points
    rows = pd.concat(parts.tables).sort_values(["index", "image"])
    several = set(points["index"][points["height"] * points["width"] > 1])
    found = [
        {"index": index}
        | (
            spatial_variance_share(
                each["within"].to_numpy(), np.stack(each["means"].to_list()), resamples, seed
            )
            if index in several
            else {"images": len(each)}
        )
        for index, each in rows.groupby("index")
    ]
    columns = ["index", "images", "within", "total", "share", "ci_low", "ci_high"]
    merged = pd.DataFrame(found, columns=[*columns, f"share{RESAMPLED}"])
    return points.merge(merged, on="index", validate="one_to_one")
