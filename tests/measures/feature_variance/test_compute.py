"""Variance over space: against torch, closed forms, and the authors' values."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.latents import GoldenLatents, written
from vitscope.measures.feature_variance.compute import (
    measure_feature_variance,
    measure_spatial_share,
    merge_spatial_share,
    spatial_variance,
)
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.per_image import merge_means
from vitscope.networks.finding.cut_points import CUT_POINT

MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 7)).astype(np.float32)


def oracle(maps: np.ndarray) -> np.ndarray:
    flat = torch.from_numpy(maps).double().flatten(2)
    return flat.var(dim=2).mean(dim=1).numpy()


@settings(max_examples=50)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.integers(2, 9)),
    st.floats(-100, 100),
    st.integers(0, 99),
)
def test_it_is_the_unbiased_variance_over_space_and_its_mean_over_channels(
    shape: tuple[int, int, int, int], mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, shape).astype(np.float32)
    # Allow errors of single precision in the sum and, squared, in the mean of the map.
    tolerance = 1e-5 + (abs(mean) * 1e-6) ** 2
    np.testing.assert_allclose(spatial_variance(maps), oracle(maps), rtol=tolerance, atol=tolerance)


def test_of_a_constant_map() -> None:
    assert spatial_variance(np.full((2, 3, 4, 4), 7, np.float32)).tolist() == [0, 0]


def test_rows_of_a_shard_say_which_image_they_are_of(tmp_path: Path) -> None:
    pixels = MAPS[:, :, :1, :1]
    latents = written(tmp_path / "file", [MAPS, MAPS[:, :2, :4, :4], pixels])
    frame = measure_feature_variance(OnLatents(latents, 30))
    assert frame["index"].tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert frame["image"].tolist() == [*range(30, 36)] * 3
    np.testing.assert_allclose(frame["variance"][6:12], oracle(MAPS[:, :2, :4, :4]), rtol=1e-5)
    # A map of one pixel has no variance.
    assert frame["variance"].isna().tolist() == [False] * 12 + [True] * 6


def test_values_of_the_authors_from_checkpoint_to_table(golden_latents: GoldenLatents) -> None:
    shards = (measure_feature_variance(OnLatents(each, at)) for at, each in golden_latents.shards)
    expected = golden_latents.expected
    blocks = golden_latents.blocks[list(CUT_POINT)]
    merged = merge_means(Parts("net", shards, blocks), "variance", 100, 0)
    assert merged["variance"].tolist() == pytest.approx(expected["variance"], rel=1e-5)
    shapes = [list(shape) for shape in golden_latents.shapes]
    assert shapes == [shape[1:] for shape in expected["shapes"]]


GENERATOR = np.random.default_rng(0)
IMAGES, CHANNELS = 12, 5
# Each channel has an offset in all images, and another one in each image.
SHARE_MAPS = (
    GENERATOR.normal(0, 2, (IMAGES, CHANNELS, 4, 3))
    + GENERATOR.normal(0, 1, (IMAGES, CHANNELS, 1, 1))
    + GENERATOR.normal(0, 9, (1, CHANNELS, 1, 1))
).astype(np.float32)
LAYERS = [
    SHARE_MAPS,
    SHARE_MAPS * 8,
    # These are constant in each image, of the same mean in all images, of one pixel, and constant.
    np.broadcast_to(SHARE_MAPS[..., :1, :1], SHARE_MAPS.shape).copy(),
    SHARE_MAPS - SHARE_MAPS.mean((2, 3), keepdims=True),
    SHARE_MAPS[..., :1, :1].copy(),
    np.full_like(SHARE_MAPS, 3),
]


def table_of(folder: Path, resamples: int = 200) -> pd.DataFrame:
    part = measure_spatial_share(OnLatents(written(folder / "file", LAYERS), 0))
    points = pd.DataFrame(
        {"index": range(len(LAYERS)), **dict.fromkeys(CUT_POINT.keys() - {"index"}, 0)}
    )
    points["height"] = points["width"] = [maps.shape[2] for maps in LAYERS]
    return merge_spatial_share(Parts("m", iter([part]), points), resamples, 0)


def directly(maps: np.ndarray) -> tuple[float, float]:
    """Return the variance within images and the total variance, in double precision."""
    wide = maps.astype(np.float64)
    return wide.var(axis=(2, 3)).mean(), wide.var(axis=(0, 2, 3)).mean()


def test_it_is_the_share_of_all_variance(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for row, maps in zip(table.to_dict("records")[:4], LAYERS, strict=False):
        within, total = directly(maps)
        assert (row["within"], row["total"]) == pytest.approx((within, total), rel=1e-6, abs=1e-12)
        assert row["share"] == pytest.approx(within / total, rel=1e-6, abs=1e-12)
    assert table["share"][:4].to_list() == pytest.approx([*table["share"][:1]] * 2 + [0, 1], 1e-6)
    assert table.loc[4:, ["share", "ci_low", "ci_high"]].isna().all(axis=None)


def test_the_interval_is_the_bootstrap_over_images(tmp_path: Path) -> None:
    row = table_of(tmp_path, resamples=4000).iloc[0]
    generator, shares = np.random.default_rng(1), []
    for _ in range(4000):
        within, total = directly(SHARE_MAPS[generator.integers(IMAGES, size=IMAGES)])
        shares.append(within / total)
    expected = np.percentile(shares, [2.5, 97.5])
    # Both use random resamples, so that the ends agree to a tenth of the interval.
    tolerance = 0.1 * (expected[1] - expected[0])
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(expected, abs=tolerance)
