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
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.measures.feature_variance import compute as variance
from vitscope.measures.feature_variance.compute import map_variance, merge, shard_variance
from vitscope.networks.blocks import block_table
from vitscope.networks.conversion import convert
from vitscope.networks.family import find_family
from vitscope.networks.latents import extract
from vitscope.networks.loading import load_model
from vitscope.workflow.tables import find_table

MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 7)).astype(np.float32)


def oracle(maps: np.ndarray) -> np.ndarray:
    flat = torch.from_numpy(maps).double().flatten(2)
    return flat.var(dim=2).mean(dim=1).numpy()


def written(path: Path, maps: Sequence[np.ndarray], dtype: str = "F32") -> TensorFile:
    tensors = {f"map{index}": (dtype, values.shape) for index, values in enumerate(maps)}
    with TensorWriter(path, tensors, {}) as writer:
        for index, values in enumerate(maps):
            writer.write(f"map{index}", 0, values)
    return TensorFile(path)


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.integers(2, 9)),
    st.floats(-100, 100),
    st.integers(0, 99),
)
def test_it_is_the_unbiased_variance_over_space_and_its_mean_over_channels(
    shape: tuple[int, int, int, int], mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, shape).astype(np.float32)
    # An error of single precision in the mean of the map, squared, and of the sum.
    tolerance = 1e-5 + (abs(mean) * 1e-6) ** 2
    np.testing.assert_allclose(map_variance(maps), oracle(maps), rtol=tolerance, atol=tolerance)


def test_of_a_map_far_from_zero() -> None:
    checkerboard = np.indices((16, 16)).sum(axis=0) % 2
    maps = np.broadcast_to(1000 + 0.5 * checkerboard, (2, 3, 16, 16)).astype(np.float32)
    np.testing.assert_allclose(map_variance(maps), 0.0625 * 256 / 255, rtol=1e-5)


def test_of_a_constant_map() -> None:
    assert map_variance(np.full((2, 3, 4, 4), 7, np.float32)).tolist() == [0, 0]


def test_a_map_of_one_pixel_has_none() -> None:
    assert np.isnan(map_variance(np.ones((2, 3, 1, 1), np.float32))).all()


@pytest.mark.parametrize("deviation", [0.1, 1.0, 30.0])
def test_of_noise_of_known_variance(deviation: float) -> None:
    maps = np.random.default_rng(1).normal(5, deviation, (64, 16, 16, 16)).astype(np.float32)
    # The variance of 262,144 normal values is known to a relative sqrt(2 / 262,144), here 5 times.
    assert map_variance(maps).mean() == pytest.approx(deviation**2, rel=0.014)


def test_pieces_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latents = written(tmp_path / "file", [MAPS])
    whole = shard_variance(latents, 0)
    for size in (1, MAPS[0].nbytes * 2, MAPS[0].nbytes * 5):
        monkeypatch.setattr(variance, "PIECE_BYTES", size)
        pd.testing.assert_frame_equal(shard_variance(latents, 0), whole, check_exact=True)
    np.testing.assert_array_equal(whole["variance"], map_variance(MAPS))


def test_rows_of_a_shard_say_which_image_they_are_of(tmp_path: Path) -> None:
    frame = shard_variance(written(tmp_path / "file", [MAPS, MAPS[:, :2, :4, :4]]), 30)
    assert frame["index"].tolist() == [0] * 6 + [1] * 6
    assert frame["image"].tolist() == [*range(30, 36)] * 2
    np.testing.assert_allclose(frame["variance"][6:], oracle(MAPS[:, :2, :4, :4]), rtol=1e-5)


def test_bfloat16_latents_are_near_those_of_float32(tmp_path: Path) -> None:
    rounded = torch.from_numpy(MAPS).bfloat16()
    latents = written(tmp_path / "file", [rounded.view(torch.uint16).numpy()], "BF16")
    values = shard_variance(latents, 0)["variance"]
    np.testing.assert_allclose(values, oracle(rounded.float().numpy()), rtol=1e-5)
    # Rounding is to 8 bits; over 280 values per image its errors average out to under 1 %.
    np.testing.assert_allclose(values, oracle(MAPS), rtol=0.01)


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
    whole = merge(sharded(PER_IMAGE, []), 100, 0)
    shards = sharded(PER_IMAGE, ends)
    random.shuffle(shards)
    pd.testing.assert_frame_equal(merge(shards, 100, 0), whole, check_exact=True)


def test_the_mean_over_images() -> None:
    merged = merge(sharded(PER_IMAGE, [7]), 100, 0)
    assert merged["index"].tolist() == [0, 1, 2]
    assert merged["images"].tolist() == [40, 40, 40]
    np.testing.assert_allclose(merged["variance"], PER_IMAGE.mean(axis=0), rtol=1e-14)


def test_the_interval_is_that_of_scipy() -> None:
    merged = merge(sharded(PER_IMAGE, []), 20_000, 0)
    theirs = bootstrap(
        (PER_IMAGE,), np.mean, method="percentile", n_resamples=20_000, axis=0, rng=1
    ).confidence_interval
    # The ends of an interval from 20,000 resamples are known to about 0.02 standard errors.
    tolerance = 0.08 * PER_IMAGE.std(axis=0) / np.sqrt(40)
    assert (np.abs(merged["ci_low"] - theirs.low) < tolerance).all()
    assert (np.abs(merged["ci_high"] - theirs.high) < tolerance).all()


def test_the_interval_depends_on_the_seed_alone() -> None:
    shards = sharded(PER_IMAGE, [])
    first, again, other = (merge(shards, 100, seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert (first["ci_low"] != other["ci_low"]).all()


def test_a_single_image_has_no_interval() -> None:
    merged = merge(sharded(PER_IMAGE[:1], []), 100, 0)
    np.testing.assert_array_equal(merged["variance"], PER_IMAGE[0])
    assert merged[["ci_low", "ci_high"]].isna().all(axis=None)


def test_single_pixels_do_not_spoil_the_others(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS, MAPS[:, :, :1, :1].copy()])
    merged = merge([shard_variance(latents, 0)], 100, 0)
    assert merged.drop(columns="index").iloc[1].isna().tolist() == [False, True, True, True]
    assert merged.iloc[0].notna().all()


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
        find_table("variance_per_image").write(
            shard_variance(TensorFile(latents), rows.start), path
        )
        shards.append(find_table("variance_per_image").read(path))

    expected = golden.expected[name]
    merged = merge(shards, 100, 0)
    assert merged["variance"].tolist() == pytest.approx(expected["variance"], rel=1e-5)
    assert [list(shape) for shape in shapes] == [shape[1:] for shape in expected["shapes"]]
