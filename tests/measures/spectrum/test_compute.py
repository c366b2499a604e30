from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vitscope.measures.spectrum.compute import BANDS, Plane, WholeSpectrum, merge, shard_spectrum

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.measures import slices as pieces
from vitscope.measures.feature_variance.compute import map_variance
from vitscope.measures.intervals import bootstrap_means
from vitscope.measures.spectrum import compute as spectrum
from vitscope.settings.loading import load_study
from vitscope.workflow.tables import find_table

EDGES = (0.25, 0.5)
MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 7)).astype(np.float32)
SMALL = MAPS[:, :3, :4, :4].copy()
FLOOR = np.log(np.float32(1e-6))


def written(path: Path, maps: Sequence[np.ndarray]) -> TensorFile:
    tensors = {f"map{index}": ("F32", values.shape) for index, values in enumerate(maps)}
    with TensorWriter(path, tensors, {}) as writer:
        for index, values in enumerate(maps):
            writer.write(f"map{index}", 0, values)
    return TensorFile(path)


def lengths(height: int, width: int) -> np.ndarray:
    """Return the frequency of each component of the whole plane, one after the other."""
    down = [min(k, height - k) / (height / 2) for k in range(height)]
    across = [min(k, width - k) / (width / 2) for k in range(width)]
    return np.array([[(a * a + b * b) ** 0.5 for b in across] for a in down])


def measured(maps: np.ndarray, edges: Sequence[float] = EDGES) -> tuple[np.ndarray, np.ndarray]:
    values = WholeSpectrum(Plane(*maps.shape[2:], edges), radial=True)(maps)
    return values[:, :3], values[:, 3:]


shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 12), st.integers(1, 12))


@settings(max_examples=60, deadline=None)
@given(
    shapes.filter(lambda shape: shape[2] * shape[3] > 1), st.floats(-100, 100), st.integers(0, 9)
)
def test_the_bands_add_up_to_the_variance(
    shape: tuple[int, int, int, int], mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, shape).astype(np.float32)
    bands, _ = measured(maps)
    assert (bands >= 0).all()
    tolerance = 1e-5 + (abs(mean) * 1e-6) ** 2
    np.testing.assert_allclose(bands.sum(axis=1), map_variance(maps), rtol=tolerance)


@settings(max_examples=40, deadline=None)
@given(shapes, st.sampled_from([(0.25, 0.5), (0.1, 0.9), (1 / 3, 2 / 3)]), st.integers(0, 9))
def test_bands_and_rings_are_those_of_the_whole_transform_of_numpy(
    shape: tuple[int, int, int, int], edges: tuple[float, float], seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(2, 1, shape).astype(np.float32)
    height, width = shape[2:]
    transform = np.abs(np.fft.fft2(maps.astype(np.float64)))
    length = lengths(height, width)
    low, high = (edge + 1e-6 for edge in edges)
    inside = [(length > 0) & (length <= low), (low < length) & (length <= high), high < length]
    pixels = height * width
    bands, rings = measured(maps, edges)
    for band, chosen in enumerate(inside):
        expected = (transform[:, :, chosen] ** 2).sum(axis=2).mean(axis=1)
        np.testing.assert_allclose(
            bands[:, band], expected / pixels / max(1, pixels - 1), rtol=1e-4, atol=1e-9
        )
    side = max(height, width)
    ring = np.ceil(length * side / 2 - 0.5 - 1e-6)
    logarithm = np.log(transform + 1e-6)
    assert rings.shape == (shape[0], side // 2 + 1)
    for radius in range(side // 2 + 1):
        expected = logarithm[:, :, ring == radius].mean(axis=(1, 2))
        np.testing.assert_allclose(rings[:, radius], expected, atol=1e-3)


@pytest.mark.parametrize(
    ("vector", "band"),
    # On an edge, a component belongs to the band below; (3, 4) has a length of 5.
    [((2, 0), 0), ((0, 4), 1), ((3, 4), 2), ((8, 8), 2), ((1, 1), 0), ((-3, 2), 1), ((0, 8), 2)],
)
def test_a_wave_is_in_the_band_of_its_frequency(vector: tuple[int, int], band: int) -> None:
    row, column = np.indices((16, 16))
    phase = 2 * np.pi * (vector[0] * row + vector[1] * column) / 16
    wave = 7 + 3 * np.cos(phase)[None, None]
    bands, _ = measured(wave.astype(np.float32))
    expected = np.zeros(3)
    expected[band] = wave.var(ddof=1)
    np.testing.assert_allclose(bands[0], expected, atol=1e-10, rtol=1e-5)


@pytest.mark.parametrize(
    ("size", "components"),
    [((1, 1), [0, 0, 0]), ((2, 2), [0, 0, 3]), ((4, 4), [0, 4, 11]), ((8, 8), [4, 8, 51])],
)
def test_components_are_counted(size: tuple[int, int], components: list[int]) -> None:
    assert Plane(*size, EDGES).components.tolist() == components


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40))
def test_every_component_but_frequency_0_is_in_a_band(height: int, width: int) -> None:
    assert Plane(height, width, EDGES).components.sum() == height * width - 1


@pytest.mark.parametrize("size", [(4, 4), (7, 7), (5, 6), (31, 31)])
def test_a_constant_map_has_no_variance_and_frequency_0_alone(size: tuple[int, int]) -> None:
    bands, rings = measured(np.full((1, 2, *size), 0.1, np.float32))
    assert bands.tolist() == [[0, 0, 0]]
    assert rings[0, 0] == pytest.approx(np.log(0.1 * np.prod(size)), rel=1e-5)
    np.testing.assert_allclose(rings[0, 1:], FLOOR, rtol=1e-6)


def test_of_a_map_far_from_zero() -> None:
    checkerboard = np.indices((16, 16)).sum(axis=0) % 2
    maps = np.broadcast_to(1000 + 0.5 * checkerboard, (2, 3, 16, 16)).astype(np.float32)
    bands, _ = measured(maps)
    np.testing.assert_allclose(bands, [[0, 0, 0.0625 * 256 / 255]] * 2, rtol=1e-5, atol=1e-12)


def test_pieces_and_threads_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latents = written(tmp_path / "file", [MAPS, SMALL])
    whole = shard_spectrum(latents, 0, EDGES, radial=True)
    for size, threads in ((1, 1), (MAPS[0].nbytes * 2, 2), (MAPS[0].nbytes * 5, 4)):
        monkeypatch.setattr(pieces, "PIECE_BYTES", size)
        for table, expected in zip(
            shard_spectrum(latents, 0, EDGES, True, threads), whole, strict=True
        ):
            pd.testing.assert_frame_equal(table, expected, check_exact=True)


def test_rows_of_a_shard_say_what_they_are_of(tmp_path: Path) -> None:
    bands, rings = shard_spectrum(written(tmp_path / "file", [MAPS, SMALL]), 30, EDGES, True)
    assert bands["index"].tolist() == [0] * 18 + [1] * 18
    assert bands["image"].tolist() == [image for image in range(30, 36) for _ in BANDS] * 2
    assert bands["band"].tolist() == [*BANDS] * 12
    assert rings["index"].tolist() == [0] * 30 + [1] * 18
    for index, maps in enumerate((MAPS, SMALL)):
        expected = measured(maps)
        for table, column, values in (
            (bands, "variance", expected[0]),
            (rings, "log_amplitude", expected[1].astype(np.float32)),
        ):
            rows = table.loc[table["index"] == index, column]
            np.testing.assert_array_equal(rows, values.ravel())


def test_without_the_radial_profile_the_bands_are_the_same(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS, SMALL])
    bands, rings = shard_spectrum(latents, 0, EDGES, radial=False)
    expected, _ = shard_spectrum(latents, 0, EDGES, radial=True)
    pd.testing.assert_frame_equal(bands, expected, check_exact=True)
    assert rings.empty
    find_table("amplitude_per_image").write(rings, tmp_path / "rings.parquet")
    assert find_table("amplitude_per_image").read(tmp_path / "rings.parquet").empty


@pytest.mark.parametrize("radial", [False, True])
def test_maps_that_are_not_finite_are_told(tmp_path: Path, radial: bool) -> None:
    maps = MAPS.copy()
    maps[2, 4, 0, 0] = np.nan
    with pytest.raises(VitscopeError, match=r"at map0 is not finite.* for image 102: check"):
        shard_spectrum(written(tmp_path / "file", [maps]), 100, EDGES, radial)


SIZES = (8, 4, 2, 1)
BLOCKS = pd.DataFrame({"index": range(4), "name": list("abcd"), "height": SIZES, "width": SIZES})
PER_IMAGE = np.random.default_rng(2).gamma(4, 0.5, (40, 4, 3))
for number, height in enumerate(SIZES):
    PER_IMAGE[:, number, Plane(height, height, EDGES).components == 0] = 0
PER_IMAGE[:, 3] = np.nan


def sharded(ends: Sequence[int]) -> list[pd.DataFrame]:
    """Cut the images into shards that end where `ends` says."""
    edges = [0, *sorted(ends), 40]
    return [
        spectrum._band_table(list(PER_IMAGE[first:last].swapaxes(0, 1)), first)
        for first, last in pairwise(edges)
        if first < last
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=7), st.randoms(use_true_random=False))
def test_any_sharding_gives_the_same(ends: list[int], random: Any) -> None:
    shards = sharded(ends)
    random.shuffle(shards)
    whole = merge(BLOCKS, sharded([]), EDGES, 100, 0)
    merged = merge(BLOCKS, shards, EDGES, 100, 0)
    pd.testing.assert_frame_equal(merged, whole, check_exact=True)


def test_the_mean_over_images_and_the_shares() -> None:
    merged = merge(BLOCKS, sharded([7]), EDGES, 100, 0)
    assert merged["band"].tolist() == [*BANDS] * 4
    assert merged["name"].tolist() == [name for name in "abcd" for _ in BANDS]
    assert merged["components"].tolist() == [4, 8, 51, 0, 4, 11, 0, 0, 3, 0, 0, 0]
    assert merged["above"].tolist() == [0, 0.25, 0.5] * 4
    assert merged["up_to"].tolist() == [0.25, 0.5, 2**0.5] * 4
    means = PER_IMAGE.mean(axis=0)
    np.testing.assert_allclose(merged["variance"], means.ravel(), rtol=1e-14)
    shares = merged["share"].to_numpy().reshape(4, 3)
    np.testing.assert_allclose(shares[0], means[0] / means[0].sum(), rtol=1e-14)
    np.testing.assert_allclose(shares[1], [np.nan, *means[1, 1:] / means[1].sum()], rtol=1e-14)
    # Of the only band there is, and of none.
    assert np.isnan(shares[2:]).all()


def test_the_interval_is_of_the_share_of_the_means() -> None:
    merged = merge(BLOCKS, sharded([]), EDGES, 500, 3)
    resampled = bootstrap_means(PER_IMAGE[:, 0], 500, 3)
    low, high = np.percentile(resampled[:, 2] / resampled.sum(axis=1), [2.5, 97.5])
    row = merged.iloc[2]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), rel=1e-12)
    assert row["ci_low"] < row["share"] < row["ci_high"]
    assert merged["ci_low"].isna().tolist() == merged["share"].isna().tolist()


def test_a_single_image_has_no_interval() -> None:
    one = spectrum._band_table(list(PER_IMAGE[:1].swapaxes(0, 1)), 0)
    merged = merge(BLOCKS, [one], EDGES, 100, 0)
    assert merged["share"].notna().tolist() == [True] * 3 + [False, True, True] + [False] * 6
    assert merged[["ci_low", "ci_high"]].isna().all(axis=None)


def test_maps_without_variance_have_no_shares(tmp_path: Path) -> None:
    maps = np.full((3, 2, 8, 8), 0.3, np.float32)
    bands, _ = shard_spectrum(written(tmp_path / "file", [maps]), 0, EDGES, False)
    merged = merge(BLOCKS.head(1), [bands], EDGES, 100, 0)
    assert merged["variance"].tolist() == [0, 0, 0]
    assert merged[["share", "ci_low", "ci_high"]].isna().all(axis=None)


def test_single_pixels_have_no_variance(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS[:, :, :1, :1].copy(), SMALL])
    bands, rings = shard_spectrum(latents, 0, EDGES, True)
    assert bands.loc[bands["index"] == 0, "variance"].isna().all()
    assert bands.loc[bands["index"] == 1, "variance"].notna().all()
    expected = np.log(np.abs(MAPS[:, :, 0, 0]) + 1e-6).mean(axis=1)
    only = rings.loc[rings["index"] == 0, "log_amplitude"]
    np.testing.assert_allclose(only, expected, atol=1e-6)


def test_a_study_whose_middle_band_ends_before_it_begins_is_told(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "config" / "studies" / "mini.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("analysis:\n", "analysis:\n  spectrum: {edges: [0.5, 0.25]}\n"))
    with pytest.raises(VitscopeError, match=r"spectrum.edges: found \[0.5, 0.25\], allowed: two"):
        load_study(path)
