"""Resample images: means in resamples, and the intervals that come of them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from vitscope.claims.intervals import KEPT, RESAMPLED, TAILS
from vitscope.files.arrays import Array

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
