"""The mean over images and its interval: from any shards the same, and as scipy has it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from vitscope.measures.per_image import means

PER_IMAGE = np.random.default_rng(2).gamma(4, 0.5, (40, 3))


def sharded(per_image: np.ndarray, ends: Sequence[int]) -> list[pd.DataFrame]:
    """Cut a table of images and cut points into shards that end where `ends` says."""
    rows = [
        {"index": index, "image": image, "variance": value}
        for image, values in enumerate(per_image)
        for index, value in enumerate(values)
    ]
    table = pd.DataFrame(rows)
    edges = [0, *sorted(ends), len(per_image)]
    return [
        table[table["image"].between(first, last, inclusive="left")].sort_values(["index", "image"])
        for first, last in pairwise(edges)
        if first < last
    ]


@settings(max_examples=25)
@given(st.lists(st.integers(0, 40), max_size=7), st.randoms(use_true_random=False))
def test_any_sharding_gives_the_same(ends: list[int], random: Any) -> None:
    whole = means(sharded(PER_IMAGE, []), "variance", 100, 0)
    shards = sharded(PER_IMAGE, ends)
    random.shuffle(shards)
    pd.testing.assert_frame_equal(means(shards, "variance", 100, 0), whole, check_exact=True)


def test_a_single_image_has_no_interval() -> None:
    merged = means(sharded(PER_IMAGE[:1], []), "variance", 100, 0)
    np.testing.assert_array_equal(merged["variance"], PER_IMAGE[0])
    assert merged[["ci_low", "ci_high"]].isna().all(axis=None)
