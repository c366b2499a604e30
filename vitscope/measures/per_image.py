"""Values of images: their means with bootstrap intervals, and parts of them that are merged."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitscope.claims.intervals import KEPT, RESAMPLED, TAILS
from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.slices import measure_slices

RESAMPLES_AT_ONCE = 64


class Spread(NamedTuple):
    """Holds 95 % intervals of several columns of a table, by resampling images.

    `low` and `high` have a value for each column. `resampled`, (kept, columns), are the values in
    the resamples that a table keeps.
    """

    low: Array
    high: Array
    resampled: Array | None

    def columns(self, column: str, name: str = "ci") -> dict[str, Any]:
        """Return the table columns: the interval, and the value in each resample."""
        lists = [self.kept(number) for number in range(len(self.low))]
        return {f"{name}_low": self.low, f"{name}_high": self.high, f"{column}{RESAMPLED}": lists}

    def kept(self, number: int) -> Array | None:
        """Return what a table keeps for one column: its value in each resample."""
        return None if self.resampled is None else self.resampled[:, number].astype(np.float32)


def ratio(upper: Array, lower: Array, otherwise: float = np.nan) -> Array:
    """Divide values; return `otherwise` where the divisor is not above zero."""
    return np.where(lower > 0, upper / np.where(lower > 0, lower, 1), otherwise)


def bootstrap_means(values: Array, resamples: int, seed: int) -> Array:
    """Resample the rows `resamples` times, alike for all columns, and return the column means."""
    generator = np.random.default_rng(seed)
    rows = len(values)
    means = []
    for start in range(0, resamples, RESAMPLES_AT_ONCE):
        count = min(RESAMPLES_AT_ONCE, resamples - start)
        weights = generator.multinomial(rows, np.full(rows, 1 / rows), size=count)
        means.append(weights.astype(np.float64) @ values / rows)
    return np.concatenate(means)


def spread(values: Array, resamples: int, seed: int) -> Spread:
    """Return the 95 % interval of each column's mean, by bootstrap over the rows, and resamples.

    A single row tells nothing about the spread: its interval is NaN, and it has no resamples.
    """
    return spread_of(np.asarray, values, resamples, seed)


def spread_of(of: Callable[[Array], Array], values: Array, resamples: int, seed: int) -> Spread:
    """Return the spread of what `of` makes from means (resamples, columns), a row for each."""
    if len(values) == 1:
        none = np.full(of(values).shape[1:], np.nan)
        return Spread(none, none, None)
    found = of(bootstrap_means(values, resamples, seed))
    low, high = np.percentile(found, TAILS, axis=0)
    return Spread(low, high, found[:KEPT])


def accuracy_changes(clean: Array, disturbed: Array, resamples: int, seed: int) -> pd.DataFrame:
    """Return what disturbances cost in accuracy, a row for each.

    `clean` tells for each image whether its class is found, (N,). `disturbed` tells it for each
    disturbance, (N, K), or gives the share of draws in which it is found. The interval is that of
    the difference of both on the same images.
    """
    changes = 100 * (disturbed.astype(np.float64) - clean.astype(np.float64)[:, None])
    return pd.DataFrame(
        {
            "clean_accuracy": clean.mean(dtype=np.float64),
            "accuracy": disturbed.mean(axis=0, dtype=np.float64),
            "change": changes.mean(axis=0),
            **spread(changes, resamples, seed).columns("change"),
        }
    )


def part_of(values: Sequence[Array], first_image: int, column: str) -> pd.DataFrame:
    """Return the rows of a part; `values` holds, for each cut point, the values of all images."""
    tables = [
        pd.DataFrame({"index": index, "image": first_image + np.arange(len(value)), column: value})
        for index, value in enumerate(values)
    ]
    return pd.concat(tables, ignore_index=True)


def part_of_tokens(
    given: OnLatents, measure: Callable[[Any], Any], column: str, on_gpu: bool = False
) -> pd.DataFrame:
    """Measure the tokens of each image of a shard at each cut point; null for a single token."""
    latents = given.latents
    several = [name for name in latents.names if np.prod(latents.shape(name)[2:]) > 1]
    measures = dict.fromkeys(several, lambda maps: measure(maps)[:, None])
    values = measure_slices(given, measures, on_gpu)
    none = {name: np.full((latents.shape(name)[0], 1), np.nan) for name in latents.names}
    found = [(none | values)[name][:, 0] for name in latents.names]
    return part_of(found, given.first_image, column)


def means(shards: Iterable[pd.DataFrame], column: str, resamples: int, seed: int) -> pd.DataFrame:
    """Return the mean over the images of all shards, with its 95 % interval, for each cut point."""
    per_image = pd.concat(
        shard.pivot(index="image", columns="index", values=column) for shard in shards
    )
    # Releases of pandas lay out values differently in memory, which would change sums.
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
    merged = means(parts.tables, column, resamples, seed)
    return parts.cut_points.merge(merged, on="index", validate="one_to_one")
