"""Average per-image values, with bootstrap intervals; make and merge parts with a row per image."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitscope.claims.intervals import KEPT, RESAMPLED, TAILS
from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.slices import measure_slices

RESAMPLES_AT_ONCE = 64


class Spread(NamedTuple):
    """Holds 95 % bootstrap intervals over images, for several columns of values.

    `low` and `high` have an entry for each column. `resampled` (kept, columns) holds the values in
    the resamples that are stored in tables; None if there are no resamples.
    """

    low: Array
    high: Array
    resampled: Array | None

    def columns(self, column: str, name: str = "ci") -> dict[str, Any]:
        """Return columns of a table: the ends of the intervals, and the values in resamples."""
        lists = [self.kept(number) for number in range(len(self.low))]
        return {f"{name}_low": self.low, f"{name}_high": self.high, f"{column}{RESAMPLED}": lists}

    def kept(self, number: int) -> Array | None:
        """Return the values of column `number` in the resamples that are stored in tables."""
        return None if self.resampled is None else self.resampled[:, number].astype(np.float32)


def ratio(upper: Array, lower: Array, otherwise: float = np.nan) -> Array:
    """Divide values; return `otherwise` where the divisor is not above zero."""
    return np.where(lower > 0, upper / np.where(lower > 0, lower, 1), otherwise)


def bootstrap_counts(images: int, resamples: int, seed: int) -> Iterator[Array]:
    """Yield, for some resamples at a time, how often each image is in each: (resamples, images)."""
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, RESAMPLES_AT_ONCE):
        count = min(RESAMPLES_AT_ONCE, resamples - start)
        drawn = generator.multinomial(images, np.full(images, 1 / images), size=count)
        yield drawn.astype(np.float64)


def bootstrap_image_means(values: Array, resamples: int, seed: int) -> Array:
    """Return the column means (resamples, columns) in each resample of the rows.

    A resample draws the same rows for all columns.
    """
    counts = bootstrap_counts(len(values), resamples, seed)
    return np.concatenate([each @ values / len(values) for each in counts])


def spread(values: Array, resamples: int, seed: int) -> Spread:
    """Return the 95 % bootstrap interval of each column's mean, and the means in stored resamples.

    Rows are resampled. For a single row, the interval is NaN and there are no resamples.
    """
    return spread_of(np.asarray, values, resamples, seed)


def spread_of(of: Callable[[Array], Array], values: Array, resamples: int, seed: int) -> Spread:
    """Return the spread of values that `of` computes from column means.

    `of` gets the means (resamples, columns), and returns a row of values for each resample.
    """
    if len(values) == 1:
        none = np.full(of(values).shape[1:], np.nan)
        return Spread(none, none, None)
    return spread_of_resamples(of(bootstrap_image_means(values, resamples, seed)))


def spread_of_resamples(found: Array) -> Spread:
    """Return the spread of values (resamples, columns)."""
    low, high = np.percentile(found, TAILS, axis=0)
    return Spread(low, high, found[:KEPT])


def part_of(values: Sequence[Array], first_image: int, column: str) -> pd.DataFrame:
    """Return the table of a part; `values` holds an array (images,) for each cut point."""
    tables = [
        pd.DataFrame({"index": index, "image": first_image + np.arange(len(value)), column: value})
        for index, value in enumerate(values)
    ]
    return pd.concat(tables, ignore_index=True)


def measure_per_image(
    given: OnLatents, measure: Callable[[Any], Any], column: str, on_gpu: bool = False
) -> pd.DataFrame:
    """Return a part with the value of each image at each cut point; NaN for maps of one token.

    `measure` gets maps (N, C, H, W), and returns their values (N,).
    """
    latents = given.latents
    several = [name for name in latents.names if np.prod(latents.shape(name)[2:]) > 1]
    measures = dict.fromkeys(several, lambda maps: measure(maps)[:, None])
    values = measure_slices(given, measures, on_gpu)
    none = {name: np.full((latents.shape(name)[0], 1), np.nan) for name in latents.names}
    found = [(none | values)[name][:, 0] for name in latents.names]
    return part_of(found, given.first_image, column)


def image_means_by_cut_point(
    shards: Iterable[pd.DataFrame], column: str, resamples: int, seed: int
) -> pd.DataFrame:
    """Return the mean of `column` over the images of all shards, by cut point, with intervals."""
    per_image = pd.concat(
        shard.pivot(index="image", columns="index", values=column) for shard in shards
    )
    # Fix the memory layout, which differs between releases of pandas and affects rounding.
    values = np.ascontiguousarray(per_image.sort_index(), np.float64)
    return pd.DataFrame(
        {
            "index": per_image.columns.to_numpy(),
            "images": len(values),
            column: values.mean(axis=0),
            **spread(values, resamples, seed).columns(column),
        }
    )


def merge_means(parts: Parts, column: str, resamples: int, seed: int) -> pd.DataFrame:
    merged = image_means_by_cut_point(parts.tables, column, resamples, seed)
    return parts.cut_points.merge(merged, on="index", validate="one_to_one")
