"""The mean over images and its interval: from any shards the same, and as scipy has it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

from vitscope.measures.given import Parts
from vitscope.measures.per_image import means, merge

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


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=7), st.randoms(use_true_random=False))
def test_any_sharding_gives_the_same(ends: list[int], random: Any) -> None:
    whole = means(sharded(PER_IMAGE, []), "variance", 100, 0)
    shards = sharded(PER_IMAGE, ends)
    random.shuffle(shards)
    pd.testing.assert_frame_equal(means(shards, "variance", 100, 0), whole, check_exact=True)


def test_the_mean_over_images() -> None:
    merged = means(sharded(PER_IMAGE, [7]), "variance", 100, 0)
    assert merged["index"].tolist() == [0, 1, 2]
    assert merged["images"].tolist() == [40, 40, 40]
    np.testing.assert_allclose(merged["variance"], PER_IMAGE.mean(axis=0), rtol=1e-14)


def test_the_interval_is_that_of_scipy() -> None:
    merged = means(sharded(PER_IMAGE, []), "variance", 20_000, 0)
    theirs = bootstrap(
        (PER_IMAGE,), np.mean, method="percentile", n_resamples=20_000, axis=0, rng=1
    ).confidence_interval
    # The ends of an interval from 20,000 resamples are known to about 0.02 standard errors.
    tolerance = 0.08 * PER_IMAGE.std(axis=0) / np.sqrt(40)
    assert (np.abs(merged["ci_low"] - theirs.low) < tolerance).all()
    assert (np.abs(merged["ci_high"] - theirs.high) < tolerance).all()


def test_the_interval_depends_on_the_seed_alone() -> None:
    shards = sharded(PER_IMAGE, [])
    first, again, other = (means(shards, "variance", 100, seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert (first["ci_low"] != other["ci_low"]).all()


def test_a_single_image_has_no_interval() -> None:
    merged = means(sharded(PER_IMAGE[:1], []), "variance", 100, 0)
    np.testing.assert_array_equal(merged["variance"], PER_IMAGE[0])
    assert merged[["ci_low", "ci_high"]].isna().all(axis=None)


def test_a_table_says_which_cut_point_each_row_is_of() -> None:
    cut_points = pd.DataFrame({"model": "vit", "index": range(3), "name": list("abc")})
    merged = merge(Parts("vit", iter(sharded(PER_IMAGE, [7])), cut_points), "variance", 100, 0)
    expected = means(sharded(PER_IMAGE, []), "variance", 100, 0)
    assert merged[["model", "name"]].to_numpy().tolist() == [["vit", name] for name in "abc"]
    rows = merged.drop(columns=["model", "name"])
    pd.testing.assert_frame_equal(rows, expected, check_exact=True)
