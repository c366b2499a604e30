import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

from tests.helpers.golden import ARCHS, Golden
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.measures import slices as pieces
from vitscope.measures.fourier.compute import (
    HalfDiagonal,
    amplitude_table,
    diagonal_steps,
    merge,
    shard_diagonal,
)
from vitscope.networks.blocks import block_table
from vitscope.networks.conversion import convert
from vitscope.networks.family import find_family
from vitscope.networks.latents import extract
from vitscope.networks.loading import load_model
from vitscope.workflow.tables import find_table

MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 8)).astype(np.float32)
FLOOR = np.log(np.float32(1e-6))


def amplitudes(maps: np.ndarray) -> np.ndarray:
    """Return |F| along the diagonal as the authors take it, with numpy and in double precision."""
    size = maps.shape[-1]
    half = int(size / 2)
    transform = np.abs(np.fft.fft2(maps.astype(np.float64)))
    centred = np.roll(transform, (half, half), axis=(-2, -1))
    return np.diagonal(centred, axis1=-2, axis2=-1)[..., half:]


def oracle(maps: np.ndarray) -> np.ndarray:
    return np.log(amplitudes(maps) + 1e-6).mean(axis=1)


def written(path: Path, maps: Sequence[np.ndarray], dtype: str = "F32") -> TensorFile:
    tensors = {f"map{index}": (dtype, values.shape) for index, values in enumerate(maps)}
    with TensorWriter(path, tensors, {}) as writer:
        for index, values in enumerate(maps):
            writer.write(f"map{index}", 0, values)
    return TensorFile(path)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 4), st.floats(-100, 100), st.integers(0, 99))
def test_it_is_the_diagonal_of_the_transform_of_numpy(
    size: int, images: int, mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, (images, 1, size, size)).astype(np.float32)
    ours = np.exp(HalfDiagonal(1, size)(maps).astype(np.float64)) - 1e-6
    # Single precision, of the amplitude and of what all pixels add up to.
    theirs = amplitudes(maps)[:, 0]
    tolerance = 3e-7 * np.abs(maps).sum(axis=(1, 2, 3))[:, None] + 2e-6 * theirs
    assert (np.abs(ours - theirs) <= tolerance).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 13, 14, 16, 28, 31, 32, 56, 59])
def test_of_even_and_of_odd_sizes(size: int) -> None:
    maps = np.random.default_rng(size).normal(1, 2, (3, 6, size, size)).astype(np.float32)
    ours = HalfDiagonal(6, size)(maps)
    assert ours.shape == (3, diagonal_steps(size))
    np.testing.assert_allclose(ours, oracle(maps), atol=2e-5)


@pytest.mark.parametrize("channels", [1, 3, 37, 192, 2048])
def test_of_any_number_of_channels(channels: int) -> None:
    maps = np.random.default_rng(1).normal(1, 2, (2, channels, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(HalfDiagonal(channels, 8)(maps), oracle(maps), atol=2e-5)


def test_of_a_wave_along_the_diagonal() -> None:
    row, column = np.indices((16, 16))
    wave = 5 + 3 * np.cos(2 * np.pi * 4 * (row + column) / 16)
    expected = np.full(8, FLOOR)
    expected[[0, 4]] = np.log([5 * 256, 3 * 256 / 2])
    ours = HalfDiagonal(1, 16)(wave[None, None].astype(np.float32))[0]
    # But for rounding there is nothing at the other frequencies.
    assert ours[[0, 4]] == pytest.approx(expected[[0, 4]], abs=1e-6)
    assert (np.delete(ours, [0, 4]) < np.log(1e-3)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 64), st.floats(-1e6, 1e6, width=32))
def test_a_constant_map_has_frequency_0_alone(size: int, value: float) -> None:
    ours = HalfDiagonal(3, size)(np.full((1, 3, size, size), value, np.float32))[0]
    assert ours[0] == pytest.approx(np.log(abs(value) * size**2 + 1e-6), rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(ours[1:], FLOOR, rtol=1e-6)


@pytest.mark.parametrize("channels", [5, 96])
@pytest.mark.parametrize("size", [3, 7, 8, 16, 32])
def test_an_image_by_itself_has_the_same_values(channels: int, size: int) -> None:
    maps = np.random.default_rng(2).normal(size=(5, channels, size, size)).astype(np.float32)
    measure = HalfDiagonal(channels, size)
    alone = np.concatenate([measure(maps[i : i + 1]) for i in range(5)])
    np.testing.assert_array_equal(measure(maps), alone)


def test_pieces_and_threads_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latents = written(tmp_path / "file", [MAPS, MAPS[:, :3, :7, :7].copy()])
    whole = shard_diagonal(latents, 0)
    for size, threads in ((1, 1), (MAPS[0].nbytes * 2, 2), (MAPS[0].nbytes * 5, 4)):
        monkeypatch.setattr(pieces, "PIECE_BYTES", size)
        frame = shard_diagonal(latents, 0, threads)
        pd.testing.assert_frame_equal(frame, whole, check_exact=True)


def test_threads_of_the_library_of_products_do_not_matter() -> None:
    code = (
        "import hashlib, numpy as np\n"
        "from vitscope.fourier import HalfDiagonal\n"
        "for channels, size in ((192, 16), (64, 32), (512, 8), (3, 31)):\n"
        "    rng = np.random.default_rng(0)\n"
        "    maps = rng.normal(size=(2, channels, size, size)).astype(np.float32)\n"
        "    values = HalfDiagonal(channels, size)(maps)\n"
        "    print(hashlib.sha256(values.tobytes()).hexdigest())\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
        ).stdout
        for threads in "14"
    ]
    assert told[0] == told[1]
    assert len(told[0].split()) == 4


def test_rows_of_a_shard_say_what_they_are_of(tmp_path: Path) -> None:
    small = MAPS[:, :2, :4, :4].copy()
    frame = shard_diagonal(written(tmp_path / "file", [MAPS, small]), 30)
    assert frame["index"].tolist() == [0] * 24 + [1] * 12
    assert frame["image"].tolist() == [i for i in range(30, 36) for _ in range(4)] + [
        i for i in range(30, 36) for _ in range(2)
    ]
    assert frame["step"].tolist() == [0, 1, 2, 3] * 6 + [0, 1] * 6
    np.testing.assert_allclose(frame["log_amplitude"][:24], oracle(MAPS).ravel(), atol=2e-5)
    np.testing.assert_allclose(frame["log_amplitude"][24:], oracle(small).ravel(), atol=2e-5)


def test_a_map_that_is_not_square_has_none(tmp_path: Path) -> None:
    frame = shard_diagonal(written(tmp_path / "file", [MAPS[:, :, :4].copy(), MAPS]), 0)
    none = frame[frame["index"] == 0]
    assert none["step"].tolist() == [0] * 6
    assert none["log_amplitude"].isna().all()
    assert frame.loc[frame["index"] == 1, "log_amplitude"].notna().all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_maps_that_are_not_finite_are_told(tmp_path: Path, wrong: float) -> None:
    maps = MAPS.copy()
    maps[2, 4, 7, 7] = wrong
    with pytest.raises(VitscopeError, match=r"at map0 is not finite.* for image 102: check"):
        shard_diagonal(written(tmp_path / "file", [maps]), 100)


def test_bfloat16_latents_are_near_those_of_float32(tmp_path: Path) -> None:
    rounded = torch.from_numpy(MAPS).bfloat16()
    latents = written(tmp_path / "file", [rounded.view(torch.uint16).numpy()], "BF16")
    values = shard_diagonal(latents, 0)["log_amplitude"]
    np.testing.assert_allclose(values, oracle(rounded.float().numpy()).ravel(), atol=2e-5)


SIZES = (8, 2, 1, 7)
STEPS = [diagonal_steps(size) for size in SIZES]
BLOCKS = pd.DataFrame({"index": range(4), "name": list("abcd"), "height": SIZES, "width": SIZES})
PER_IMAGE = {
    index: np.random.default_rng(index).normal(-2, 1, (40, steps)).astype(np.float32)
    for index, steps in enumerate(STEPS)
}


def sharded(ends: Sequence[int]) -> list[pd.DataFrame]:
    """Cut the images into shards that end where `ends` says."""
    edges = [0, *sorted(ends), 40]
    return [
        amplitude_table({i: values[first:last] for i, values in PER_IMAGE.items()}, first)
        for first, last in pairwise(edges)
        if first < last
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=7), st.randoms(use_true_random=False))
def test_any_sharding_gives_the_same(ends: list[int], random: Any) -> None:
    shards = sharded(ends)
    random.shuffle(shards)
    merged, whole = (
        merge(BLOCKS, {"diagonal": tables, "radial": tables}, 100, 0)
        for tables in (shards, sharded([]))
    )
    pd.testing.assert_frame_equal(merged, whole, check_exact=True)


def test_the_mean_over_images_and_its_difference_to_frequency_0() -> None:
    merged = merge(BLOCKS, {"diagonal": sharded([7])}, 100, 0)
    assert merged["index"].tolist() == [0] * 4 + [1, 2] + [3] * 4
    assert merged["frequency"].tolist() == [0, 1 / 3, 2 / 3, 1, 0, 0, 0, 1 / 3, 2 / 3, 1]
    assert set(merged["measure"]) == {"diagonal"}
    assert set(merged["images"]) == {40}
    assert merged["name"].tolist() == [*"aaaabcdddd"]
    for index, values in PER_IMAGE.items():
        rows = merged[merged["index"] == index]
        means = values.mean(axis=0, dtype=np.float64)
        np.testing.assert_allclose(rows["log_amplitude"], means, rtol=1e-12)
        np.testing.assert_allclose(rows["delta_log_amplitude"], means - means[0], atol=1e-12)
    at_zero = merged[merged["frequency"] == 0]
    assert (at_zero[["delta_log_amplitude", "ci_low", "ci_high"]] == 0).all(axis=None)


def test_radial_frequencies_are_those_of_the_longer_axis() -> None:
    sizes = {"height": [8, 7, 1], "width": [8, 7, 4]}
    blocks = pd.DataFrame({"index": range(3), **sizes})
    values = {0: np.zeros((2, 5)), 1: np.zeros((2, 4)), 2: np.zeros((2, 3))}
    merged = merge(blocks, {"radial": [amplitude_table(values, 0)]}, 100, 0)
    expected = [0, 0.25, 0.5, 0.75, 1, 0, 2 / 7, 4 / 7, 6 / 7, 0, 0.5, 1]
    assert merged["frequency"].tolist() == pytest.approx(expected, rel=1e-15)


def test_the_interval_is_that_of_the_difference() -> None:
    merged = merge(BLOCKS, {"diagonal": sharded([])}, 20_000, 0)
    rows = merged[(merged["index"] == 0) & (merged["frequency"] > 0)]
    values = PER_IMAGE[0].astype(np.float64)
    difference = values[:, 1:] - values[:, :1]
    theirs = bootstrap(
        (difference,), np.mean, method="percentile", n_resamples=20_000, axis=0, rng=1
    ).confidence_interval
    # The ends of an interval from 20,000 resamples are known to about 0.02 standard errors.
    tolerance = 0.08 * difference.std(axis=0) / np.sqrt(40)
    assert (np.abs(rows["ci_low"] - theirs.low) < tolerance).all()
    assert (np.abs(rows["ci_high"] - theirs.high) < tolerance).all()


def test_a_single_image_has_no_interval() -> None:
    one = amplitude_table({i: values[:1] for i, values in PER_IMAGE.items()}, 0)
    merged = merge(BLOCKS, {"diagonal": [one]}, 100, 0)
    assert merged["delta_log_amplitude"].notna().all()
    assert merged[["ci_low", "ci_high"]].isna().all(axis=None)


def test_a_map_without_a_diagonal_does_not_spoil_the_others(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS[:, :, :4].copy(), MAPS])
    blocks = pd.DataFrame({"index": range(2), "height": [4, 8], "width": [8, 8]})
    merged = merge(blocks, {"diagonal": [shard_diagonal(latents, 0)]}, 100, 0)
    values = ["log_amplitude", "delta_log_amplitude", "ci_low", "ci_high"]
    assert merged["frequency"].tolist() == [0, 0, 1 / 3, 2 / 3, 1]
    assert merged[values].iloc[0].isna().all()
    assert merged[values].iloc[1:].notna().all(axis=None)


@pytest.mark.parametrize("name", ["resnet_50", "vit_ti"])
def test_values_of_the_authors_from_checkpoint_to_table(
    golden: Golden, tmp_path: Path, name: str
) -> None:
    source, converted = tmp_path / "published.pth.tar", tmp_path / "converted.safetensors"
    torch.save(golden.state_dict(name), source)
    family, arch = ARCHS[name]
    network = {"family": family, "arch": arch, "classes": 100, "image_size": 32}
    convert(source, network, converted, label=name, origin="golden")
    model = load_model(converted, network)
    cut_points = find_family(family).cut_points(model)
    blocks = block_table(name, model, cut_points, 32)
    shapes = list(blocks[["channels", "height", "width"]].itertuples(index=False, name=None))
    images, _ = golden.images(16)

    shards = []
    for shard, rows in enumerate((slice(0, 10), slice(10, 16))):
        latents = tmp_path / f"{shard}.safetensors"
        batches = images[rows].split(4)
        extract(model, cut_points, shapes, batches, len(images[rows]), latents)
        path = tmp_path / f"{shard}.parquet"
        table = shard_diagonal(TensorFile(latents), rows.start, threads=2)
        find_table("amplitude_per_image").write(table, path)
        shards.append(find_table("amplitude_per_image").read(path))

    merged = merge(blocks.drop(columns="parameters"), {"diagonal": shards}, 100, 0)
    find_table("fourier").write(merged, tmp_path / "fourier.parquet")
    expected = golden.expected[name]["delta_log_amplitude"]
    assert merged["index"].nunique() == len(expected)
    for index, values in enumerate(expected):
        curve = merged[merged["index"] == index]
        assert curve["delta_log_amplitude"].tolist() == pytest.approx(values, abs=1e-4)
        labels = np.linspace(0, 1, len(values))
        np.testing.assert_allclose(curve["frequency"], labels, atol=1e-15)


def test_points_of_the_published_figure_are_as_many(points_of_fig2a: pd.DataFrame) -> None:
    sizes = {"ResNet": [56] * 4 + [28] * 4 + [14] * 6 + [7] * 3, "ViT": [14] * 25}
    for model, expected in sizes.items():
        counts = points_of_fig2a[points_of_fig2a["model"] == model].groupby("index").size()
        assert counts.tolist() == [diagonal_steps(size) for size in expected]


@pytest.fixture
def points_of_fig2a() -> pd.DataFrame:
    return pd.read_csv(Path(__file__).parents[3] / "resources" / "published" / "fig2a.csv")
