from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import GoldenLatents, written
from vitscope.claims.intervals import KEPT
from vitscope.measures.bootstrap import bootstrap_image_means
from vitscope.measures.fourier.compute import (
    AMPLITUDES,
    measure_fourier,
    merge_fourier,
    merge_spectrum,
)
from vitscope.measures.fourier.measure import FOURIER_PART
from vitscope.measures.fourier.spectra import (
    BANDS,
    HalfDiagonal,
    LongDiagonal,
    Plane,
    diagonal_steps,
)
from vitscope.measures.given import OnLatents, Parts
from vitscope.networks.finding.cut_points import CUT_POINT

EDGES = (0.25, 0.5)
MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 8)).astype(np.float32)
OBLONG = MAPS[:, :, :, :7].copy()
PIXEL = MAPS[:, :, :1, :1].copy()


def test_a_shard_has_every_quantity_of_every_image(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS, OBLONG, PIXEL])
    frame = measure_fourier(OnLatents(latents, 30, threads=2), radial=True, edges=EDGES)
    expected = []
    for index, maps in enumerate((MAPS, OBLONG, PIXEL)):
        height, width = maps.shape[2:]
        nothing = np.full((6, 1), np.nan)
        whole = Plane(height, width, EDGES, radial=True)(maps)
        diagonal = LongDiagonal(8, 7) if maps is OBLONG else HalfDiagonal(5, height)
        found = {"diagonal": diagonal(maps).astype(np.float64)}
        for number, band in enumerate(BANDS):
            # A single pixel has no variance.
            found[band] = nothing if maps is PIXEL else whole[:, [number]]
        found["radial"] = whole[:, 3:].astype(np.float32)
        expected += [
            (index, 30 + image, quantity, step, value)
            for quantity, values in found.items()
            for image, steps in enumerate(values)
            for step, value in enumerate(steps)
        ]
    made = pd.DataFrame(expected, columns=list(FOURIER_PART.columns))
    pd.testing.assert_frame_equal(frame, made, check_exact=True)
    FOURIER_PART.write(frame, tmp_path / "part.parquet")
    back = FOURIER_PART.read(tmp_path / "part.parquet")
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_dtype=False)
    for edges, wanted in ((None, ["diagonal"]), (EDGES, ["diagonal", *BANDS])):
        some = measure_fourier(OnLatents(latents, 30), radial=False, edges=edges)
        of_whole = frame[frame["quantity"].isin(wanted)].reset_index(drop=True)
        pd.testing.assert_frame_equal(some, of_whole, check_exact=True)


SIZES = (8, 2, 1, 7)
BLOCKS = pd.DataFrame({"index": range(4), "name": list("abcd"), "height": SIZES, "width": SIZES})
PER_IMAGE = {
    index: np.random.default_rng(index).normal(-2, 1, (40, diagonal_steps(size))).astype(np.float32)
    for index, size in enumerate(SIZES)
}


def part(quantity: str, values: Mapping[int, np.ndarray]) -> pd.DataFrame:
    rows = [
        (index, image, quantity, step, value)
        for index, of_images in values.items()
        for image, of_steps in enumerate(of_images)
        for step, value in enumerate(of_steps)
    ]
    return pd.DataFrame(rows, columns=list(FOURIER_PART.columns))


WHOLE = pd.concat(part(quantity, PER_IMAGE) for quantity in AMPLITUDES)
DIAGONAL = WHOLE[WHOLE["quantity"] == "diagonal"]


def merged(
    shards: Sequence[pd.DataFrame], resamples: int = 100, blocks: pd.DataFrame = BLOCKS
) -> pd.DataFrame:
    return merge_fourier(Parts("net", iter(shards), blocks), resamples, 0)


def test_bands_of_a_part_change_nothing() -> None:
    assert merged([WHOLE])["measure"].unique().tolist() == ["diagonal", "radial"]
    found = merged([SPECTRUM_WHOLE])
    pd.testing.assert_frame_equal(found, merged([DIAGONAL]), check_exact=True)


def test_the_mean_over_images_and_its_difference_to_frequency_0() -> None:
    table = merged([DIAGONAL])
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
    table = merged([WHOLE], 2 * KEPT)
    values = PER_IMAGE[0].astype(np.float64)
    resampled = bootstrap_image_means(values[:, 1:] - values[:, :1], 2 * KEPT, 0)
    rows = table[(table["index"] == 0) & (table["frequency"] > 0)]
    for _, each in rows.groupby("measure"):
        ends = np.percentile(resampled, [2.5, 97.5], axis=0)
        np.testing.assert_allclose(each[["ci_low", "ci_high"]].T, ends, rtol=1e-12)
    # Claims are about the highest frequency of the diagonal.
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


def test_values_of_the_authors_from_checkpoint_to_table(golden_latents: GoldenLatents) -> None:
    shards = [
        measure_fourier(OnLatents(latents, first, 2), radial=False, edges=None)
        for first, latents in golden_latents.shards
    ]
    table = merged(shards, blocks=golden_latents.blocks[list(CUT_POINT)])
    expected = golden_latents.expected["delta_log_amplitude"]
    assert table["index"].nunique() == len(expected)
    for index, values in enumerate(expected):
        curve = table[table["index"] == index]
        assert curve["delta_log_amplitude"].tolist() == pytest.approx(values, abs=1e-4)
        labels = np.linspace(0, 1, len(values))
        np.testing.assert_allclose(curve["frequency"], labels, atol=1e-15)


SPECTRUM_SIZES = (8, 4, 2, 1)
SPECTRUM_BLOCKS = BLOCKS.assign(height=SPECTRUM_SIZES, width=SPECTRUM_SIZES)
SPECTRUM_PER_IMAGE = np.random.default_rng(2).gamma(4, 0.5, (40, 4, 3))
for number, height in enumerate(SPECTRUM_SIZES):
    SPECTRUM_PER_IMAGE[:, number, Plane(height, height, EDGES).components == 0] = 0
SPECTRUM_PER_IMAGE[:, 3] = np.nan


OF_BANDS = [
    part(band, {index: SPECTRUM_PER_IMAGE[:, index, [number]] for index in range(4)})
    for number, band in enumerate(BANDS)
]
SPECTRUM_WHOLE = pd.concat([DIAGONAL, *OF_BANDS])


def merged_of_spectrum(
    shards: Sequence[pd.DataFrame], resamples: int = 100, blocks: pd.DataFrame = SPECTRUM_BLOCKS
) -> pd.DataFrame:
    return merge_spectrum(Parts("net", iter(shards), blocks), EDGES, resamples, 3)


def test_the_mean_over_images_and_the_shares() -> None:
    table = merged_of_spectrum([SPECTRUM_WHOLE])
    assert table["band"].tolist() == [*BANDS] * 4
    assert table["name"].tolist() == [name for name in "abcd" for _ in BANDS]
    assert table["components"].tolist() == [4, 8, 51, 0, 4, 11, 0, 0, 3, 0, 0, 0]
    assert table["above"].tolist() == [0, 0.25, 0.5] * 4
    assert table["up_to"].tolist() == [0.25, 0.5, 2**0.5] * 4
    means = SPECTRUM_PER_IMAGE.mean(axis=0)
    np.testing.assert_allclose(table["variance"], means.ravel(), rtol=1e-14)
    shares = table["share"].to_numpy().reshape(4, 3)
    np.testing.assert_allclose(shares[0], means[0] / means[0].sum(), rtol=1e-14)
    np.testing.assert_allclose(shares[1], [np.nan, *means[1, 1:] / means[1].sum()], rtol=1e-14)
    # A share is undefined if only one band has components, or none.
    assert np.isnan(shares[2:]).all()


def test_the_interval_is_of_the_share_of_the_means() -> None:
    table = merged_of_spectrum([SPECTRUM_WHOLE], 500)
    resampled = bootstrap_image_means(SPECTRUM_PER_IMAGE[:, 0], 500, 3)
    low, high = np.percentile(resampled[:, 2] / resampled.sum(axis=1), [2.5, 97.5])
    row = table.iloc[2]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), rel=1e-12)
    assert row["ci_low"] < row["share"] < row["ci_high"]
    assert table["ci_low"].isna().tolist() == table["share"].isna().tolist()
    single = merged_of_spectrum([SPECTRUM_WHOLE[SPECTRUM_WHOLE["image"] == 0]])
    assert single[["ci_low", "ci_high"]].isna().all(axis=None)


def test_maps_without_variance_have_no_shares(tmp_path: Path) -> None:
    maps = np.full((3, 2, 8, 8), 0.3, np.float32)
    shard = measure_fourier(OnLatents(written(tmp_path / "file", [maps]), 0), False, EDGES)
    table = merged_of_spectrum([shard], blocks=SPECTRUM_BLOCKS.head(1))
    assert table["variance"].tolist() == [0, 0, 0]
    assert table[["share", "ci_low", "ci_high"]].isna().all(axis=None)
