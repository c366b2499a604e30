"""The amplitudes over all images: from any shards the same, and as the authors have them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.latents import GoldenLatents, written
from vitscope.measures.columns import KEPT
from vitscope.measures.fourier.compute import AMPLITUDES, measure_fourier, merge_fourier
from vitscope.measures.fourier.measure import FOURIER_PART, FOURIER_TABLE
from vitscope.measures.fourier.plane import BANDS, diagonal_steps
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.intervals import bootstrap_means
from vitscope.networks.finding.cut_point_columns import CUT_POINT

MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 8)).astype(np.float32)
SIZES = (8, 2, 1, 7)
STEPS = [diagonal_steps(size) for size in SIZES]
BLOCKS = pd.DataFrame({"index": range(4), "name": list("abcd"), "height": SIZES, "width": SIZES})
PER_IMAGE = {
    index: np.random.default_rng(index).normal(-2, 1, (40, steps)).astype(np.float32)
    for index, steps in enumerate(STEPS)
}


def part(quantity: str, values: Mapping[int, np.ndarray]) -> pd.DataFrame:
    """Return a part by values of each image (N, steps) at each cut point."""
    rows = [
        (index, image, quantity, step, value)
        for index, of_images in values.items()
        for image, of_steps in enumerate(of_images)
        for step, value in enumerate(of_steps)
    ]
    return pd.DataFrame(rows, columns=list(FOURIER_PART.columns))


WHOLE = pd.concat(part(quantity, PER_IMAGE) for quantity in AMPLITUDES)


def sharded(ends: Sequence[int], quantities: Sequence[str] = ("diagonal",)) -> list[pd.DataFrame]:
    """Cut the images into shards that end where `ends` says."""
    table = WHOLE[WHOLE["quantity"].isin(quantities)]
    return [
        table[table["image"].between(first, last, inclusive="left")]
        for first, last in pairwise([0, *sorted(ends), 40])
        if first < last
    ]


def merged(
    shards: Sequence[pd.DataFrame], resamples: int = 100, blocks: pd.DataFrame = BLOCKS
) -> pd.DataFrame:
    return merge_fourier(Parts("net", iter(shards), blocks), resamples, 0)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 40), max_size=7), st.randoms(use_true_random=False))
def test_any_sharding_gives_the_same(ends: list[int], random: Any) -> None:
    shards = sharded(ends, AMPLITUDES)
    random.shuffle(shards)
    whole = merged([WHOLE])
    assert whole["measure"].unique().tolist() == ["diagonal", "radial"]
    pd.testing.assert_frame_equal(merged(shards), whole, check_exact=True)


def test_bands_of_a_part_change_nothing() -> None:
    bands = [part(band, {i: np.ones((40, 1)) for i in range(4)}) for band in BANDS]
    whole = pd.concat([*sharded([]), *bands])
    pd.testing.assert_frame_equal(merged([whole]), merged(sharded([])), check_exact=True)


def test_the_mean_over_images_and_its_difference_to_frequency_0() -> None:
    table = merged(sharded([7]))
    assert table["index"].tolist() == [0] * 4 + [1, 2] + [3] * 4
    assert table["frequency"].tolist() == [0, 1 / 3, 2 / 3, 1, 0, 0, 0, 1 / 3, 2 / 3, 1]
    assert set(table["measure"]) == {"diagonal"}
    assert set(table["images"]) == {40}
    assert table["name"].tolist() == [*"aaaabcdddd"]
    for index, values in PER_IMAGE.items():
        rows = table[table["index"] == index]
        means = values.mean(axis=0, dtype=np.float64)
        np.testing.assert_allclose(rows["log_amplitude"], means, rtol=1e-12)
        np.testing.assert_allclose(rows["delta_log_amplitude"], means - means[0], atol=1e-12)
    at_zero = table[table["frequency"] == 0]
    assert (at_zero[["delta_log_amplitude", "ci_low", "ci_high"]] == 0).all(axis=None)


def test_radial_frequencies_are_those_of_the_longer_axis() -> None:
    sizes = {"height": [8, 7, 1], "width": [8, 7, 4]}
    blocks = pd.DataFrame({"index": range(3), **sizes})
    values = {0: np.zeros((2, 5)), 1: np.zeros((2, 4)), 2: np.zeros((2, 3))}
    table = merged([part("radial", values)], blocks=blocks)
    expected = [0, 0.25, 0.5, 0.75, 1, 0, 2 / 7, 4 / 7, 6 / 7, 0, 0.5, 1]
    assert table["frequency"].tolist() == pytest.approx(expected, rel=1e-15)


def test_the_interval_and_the_resamples_are_those_of_the_difference() -> None:
    table = merged(sharded([], AMPLITUDES), 2 * KEPT)
    values = PER_IMAGE[0].astype(np.float64)
    resampled = bootstrap_means(values[:, 1:] - values[:, :1], 2 * KEPT, 0)
    rows = table[(table["index"] == 0) & (table["frequency"] > 0)]
    for _, each in rows.groupby("measure"):
        ends = np.percentile(resampled, [2.5, 97.5], axis=0)
        np.testing.assert_allclose(each[["ci_low", "ci_high"]].T, ends, rtol=1e-12)
    # The highest frequency of the diagonal is what claims are about.
    lists = table["delta_log_amplitude_resampled"]
    claimed = (table["frequency"] == 1) & (table["measure"] == "diagonal")
    assert (lists.notna() == claimed).all()
    assert claimed.sum() == 2
    np.testing.assert_allclose(lists[claimed].iloc[0], resampled[:KEPT, -1], rtol=1e-6)


def test_maps_of_every_shape_have_a_diagonal(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS[:, :, :4].copy(), MAPS])
    blocks = pd.DataFrame({"index": range(2), "height": [4, 8], "width": [8, 8]})
    table = merged([measure_fourier(OnLatents(latents, 0), False, None)], blocks=blocks)
    values = ["log_amplitude", "delta_log_amplitude", "ci_low", "ci_high"]
    assert table["frequency"].tolist() == [0, 1, 0, 1 / 3, 2 / 3, 1]
    assert table[values].notna().all(axis=None)


def test_values_of_the_authors_from_checkpoint_to_table(
    golden_latents: GoldenLatents, tmp_path: Path
) -> None:
    shards = []
    for first, latents in golden_latents.shards:
        amplitudes = measure_fourier(OnLatents(latents, first, 2), radial=False, edges=None)
        FOURIER_PART.write(amplitudes, tmp_path / "part.parquet")
        shards.append(FOURIER_PART.read(tmp_path / "part.parquet"))

    table = merged(shards, blocks=golden_latents.blocks[list(CUT_POINT)])
    FOURIER_TABLE.write(table, tmp_path / "fourier.parquet")
    expected = golden_latents.expected["delta_log_amplitude"]
    assert table["index"].nunique() == len(expected)
    for index, values in enumerate(expected):
        curve = table[table["index"] == index]
        assert curve["delta_log_amplitude"].tolist() == pytest.approx(values, abs=1e-4)
        labels = np.linspace(0, 1, len(values))
        np.testing.assert_allclose(curve["frequency"], labels, atol=1e-15)
