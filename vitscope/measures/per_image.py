"""A value of every image at every cut point: as a part, and merged to means with intervals."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.intervals import spread
from vitscope.measures.slices import measure_slices


def part_of(values: Sequence[Array], first_image: int, column: str) -> pd.DataFrame:
    """Return the rows of a part: `values` has, for each cut point, the values of all images.

    `first_image` is the position of the shard's first image among those measured.
    """
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "index": index,
                    "image": np.arange(first_image, first_image + len(value)),
                    column: value,
                }
            )
            for index, value in enumerate(values)
        ],
        ignore_index=True,
    )


def part_of_tokens(
    given: OnLatents, measure: Callable[[Any], Any], column: str, on_gpu: bool = False
) -> pd.DataFrame:
    """Measure the tokens of every image of a shard at every cut point; null where there is one.

    `measure` returns a value for each image of (N, C, H, W); with `on_gpu`, of a tensor too.
    """
    latents = given.latents
    several = [name for name in latents.names if np.prod(latents.shape(name)[2:]) > 1]
    measures = dict.fromkeys(several, lambda maps: measure(maps)[:, None])
    values = measure_slices(given, measures, on_gpu)
    none = {name: np.full((latents.shape(name)[0], 1), np.nan) for name in latents.names}
    found = [(none | values)[name][:, 0] for name in latents.names]
    return part_of(found, given.first_image, column)


def means(shards: Iterable[pd.DataFrame], column: str, resamples: int, seed: int) -> pd.DataFrame:
    """Return the mean over the images of all shards and its 95 % interval, for each cut point."""
    per_image = pd.concat(
        shard.pivot(index="image", columns="index", values=column) for shard in shards
    )
    # How values lie in memory differs between releases of pandas, and sums follow it.
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
    """Return the means of a model at each cut point, with what is known of the cut point."""
    merged = means(parts.tables, column, resamples, seed)
    return parts.cut_points.merge(merged, on="index", validate="one_to_one")
