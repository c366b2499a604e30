"""Average per-image values, with bootstrap intervals; make and merge parts with a row per image."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import spread
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.slices import measure_slices


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
