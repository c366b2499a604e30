"""Variance over space: against torch, closed forms, and the authors' values."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.latents import GoldenLatents, rounded, written
from vitscope.measures import slices
from vitscope.measures.feature_variance.compute import measure_feature_variance, spatial_variance
from vitscope.measures.feature_variance.measure import FEATURE_VARIANCE_PART, FEATURE_VARIANCE_TABLE
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.per_image import merge_means
from vitscope.networks.finding.cut_point_columns import CUT_POINT

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
    # An error of single precision in the mean of the map, squared, and of the sum.
    tolerance = 1e-5 + (abs(mean) * 1e-6) ** 2
    np.testing.assert_allclose(spatial_variance(maps), oracle(maps), rtol=tolerance, atol=tolerance)


def test_of_a_constant_map() -> None:
    assert spatial_variance(np.full((2, 3, 4, 4), 7, np.float32)).tolist() == [0, 0]


def test_a_map_of_one_pixel_has_none(tmp_path: Path) -> None:
    found = measure_feature_variance(
        OnLatents(written(tmp_path / "file", [MAPS[:, :, :1, :1], MAPS]), 0)
    )
    assert found["variance"].isna().tolist() == [True] * 6 + [False] * 6


def test_slices_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latents = written(tmp_path / "file", [MAPS])
    whole = measure_feature_variance(OnLatents(latents, 0))
    for size in (1, MAPS[0].nbytes * 2, MAPS[0].nbytes * 5):
        monkeypatch.setattr(slices, "SLICE_BYTES", size)
        pd.testing.assert_frame_equal(
            measure_feature_variance(OnLatents(latents, 0)), whole, check_exact=True
        )
    np.testing.assert_array_equal(whole["variance"], spatial_variance(MAPS))


def test_rows_of_a_shard_say_which_image_they_are_of(tmp_path: Path) -> None:
    frame = measure_feature_variance(
        OnLatents(written(tmp_path / "file", [MAPS, MAPS[:, :2, :4, :4]]), 30)
    )
    assert frame["index"].tolist() == [0] * 6 + [1] * 6
    assert frame["image"].tolist() == [*range(30, 36)] * 2
    np.testing.assert_allclose(frame["variance"][6:], oracle(MAPS[:, :2, :4, :4]), rtol=1e-5)


def test_bfloat16_latents_are_near_those_of_float32(tmp_path: Path) -> None:
    raw, values_of_raw = rounded(MAPS)
    values = measure_feature_variance(OnLatents(written(tmp_path / "file", [raw], "BF16"), 0))[
        "variance"
    ]
    np.testing.assert_allclose(values, oracle(values_of_raw), rtol=1e-5)
    # Rounding is to 8 bits; over 280 values per image its errors average out to under 1 %.
    np.testing.assert_allclose(values, oracle(MAPS), rtol=0.01)


def test_values_of_the_authors_from_checkpoint_to_table(
    golden_latents: GoldenLatents, tmp_path: Path
) -> None:
    shards = []
    for first, latents in golden_latents.shards:
        FEATURE_VARIANCE_PART.write(
            measure_feature_variance(OnLatents(latents, first)), tmp_path / "part.parquet"
        )
        shards.append(FEATURE_VARIANCE_PART.read(tmp_path / "part.parquet"))

    expected = golden_latents.expected
    blocks = golden_latents.blocks[list(CUT_POINT)]
    merged = merge_means(Parts("net", iter(shards), blocks), "variance", 100, 0)
    FEATURE_VARIANCE_TABLE.write(merged, tmp_path / "table.parquet")
    assert merged["variance"].tolist() == pytest.approx(expected["variance"], rel=1e-5)
    shapes = [list(shape) for shape in golden_latents.shapes]
    assert shapes == [shape[1:] for shape in expected["shapes"]]
