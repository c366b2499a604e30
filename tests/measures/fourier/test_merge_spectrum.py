"""The bands over all images: means, shares and intervals, from any shards the same."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.latents import written
from vitscope.errors import VitscopeError
from vitscope.measures.fourier.compute import measure_fourier, merge_spectrum
from vitscope.measures.fourier.measure import FOURIER_PART, SPECTRUM_TABLE
from vitscope.measures.fourier.plane import BANDS, Plane
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.intervals import bootstrap_means
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

EDGES = (0.25, 0.5)
SIZES = (8, 4, 2, 1)
BLOCKS = pd.DataFrame({"index": range(4), "name": list("abcd"), "height": SIZES, "width": SIZES})
PER_IMAGE = np.random.default_rng(2).gamma(4, 0.5, (40, 4, 3))
for number, height in enumerate(SIZES):
    PER_IMAGE[:, number, Plane(height, height, EDGES).components == 0] = 0
PER_IMAGE[:, 3] = np.nan


def part() -> pd.DataFrame:
    """Return a part of all images, amplitudes beside the bands."""
    rows: list[tuple[Any, ...]] = []
    for image, of_points in enumerate(PER_IMAGE):
        for index, of_bands in enumerate(of_points):
            rows.append((index, image, "diagonal", 0, -1.0))
            rows += [(index, image, band, 0, v) for band, v in zip(BANDS, of_bands, strict=True)]
    return pd.DataFrame(rows, columns=list(FOURIER_PART.columns))


WHOLE = part()


def sharded(ends: Sequence[int]) -> list[pd.DataFrame]:
    """Cut the images into shards that end where `ends` says."""
    return [
        WHOLE[WHOLE["image"].between(first, last, inclusive="left")]
        for first, last in pairwise([0, *sorted(ends), 40])
        if first < last
    ]


def merged(
    shards: Sequence[pd.DataFrame],
    resamples: int = 100,
    seed: int = 0,
    blocks: pd.DataFrame = BLOCKS,
) -> pd.DataFrame:
    return merge_spectrum(Parts("net", iter(shards), blocks), EDGES, resamples, seed)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 40), max_size=7), st.randoms(use_true_random=False))
def test_any_sharding_gives_the_same(ends: list[int], random: Any) -> None:
    shards = sharded(ends)
    random.shuffle(shards)
    pd.testing.assert_frame_equal(merged(shards), merged(sharded([])), check_exact=True)


def test_the_mean_over_images_and_the_shares(tmp_path: Path) -> None:
    facts = {"model": "net", "kind": "conv", "stage": 0, "depth": 0.0, "channels": 5}
    table = merged(sharded([7]), blocks=BLOCKS.assign(**facts))
    SPECTRUM_TABLE.write(table, tmp_path / "table.parquet")
    assert table["band"].tolist() == [*BANDS] * 4
    assert table["name"].tolist() == [name for name in "abcd" for _ in BANDS]
    assert table["components"].tolist() == [4, 8, 51, 0, 4, 11, 0, 0, 3, 0, 0, 0]
    assert table["above"].tolist() == [0, 0.25, 0.5] * 4
    assert table["up_to"].tolist() == [0.25, 0.5, 2**0.5] * 4
    means = PER_IMAGE.mean(axis=0)
    np.testing.assert_allclose(table["variance"], means.ravel(), rtol=1e-14)
    shares = table["share"].to_numpy().reshape(4, 3)
    np.testing.assert_allclose(shares[0], means[0] / means[0].sum(), rtol=1e-14)
    np.testing.assert_allclose(shares[1], [np.nan, *means[1, 1:] / means[1].sum()], rtol=1e-14)
    # Of the only band there is, and of none.
    assert np.isnan(shares[2:]).all()


def test_the_interval_is_of_the_share_of_the_means() -> None:
    table = merged(sharded([]), 500, 3)
    resampled = bootstrap_means(PER_IMAGE[:, 0], 500, 3)
    low, high = np.percentile(resampled[:, 2] / resampled.sum(axis=1), [2.5, 97.5])
    row = table.iloc[2]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), rel=1e-12)
    assert row["ci_low"] < row["share"] < row["ci_high"]
    assert table["ci_low"].isna().tolist() == table["share"].isna().tolist()
    single = merged([WHOLE[WHOLE["image"] == 0]])
    assert single[["ci_low", "ci_high"]].isna().all(axis=None)


def test_maps_without_variance_have_no_shares(tmp_path: Path) -> None:
    maps = np.full((3, 2, 8, 8), 0.3, np.float32)
    shard = measure_fourier(OnLatents(written(tmp_path / "file", [maps]), 0), False, EDGES)
    table = merged([shard], blocks=BLOCKS.head(1))
    assert table["variance"].tolist() == [0, 0, 0]
    assert table[["share", "ci_low", "ci_high"]].isna().all(axis=None)


def test_a_study_whose_middle_band_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    text = (BUNDLED_STUDIES / "mini.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("analysis:\n", "analysis:\n  spectrum: {edges: [0.5, 0.25]}\n"))
    with pytest.raises(VitscopeError, match=r"spectrum.edges: found \[0.5, 0.25\], allowed: two"):
        load_study(path)
