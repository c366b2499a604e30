"""The share of the variance within images: against numpy over all positions."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import written
from vitscope.measures.feature_variance.compute import measure_spatial_share, merge_spatial_share
from vitscope.measures.feature_variance.measure import SPATIAL_SHARE_PART, SPATIAL_SHARE_TABLE
from vitscope.measures.given import OnLatents, Parts
from vitscope.networks.finding.cut_point_columns import CUT_POINT

GENERATOR = np.random.default_rng(0)
IMAGES, CHANNELS = 12, 5
# Channels with offsets of their own, and images with theirs.
MAPS = (
    GENERATOR.normal(0, 2, (IMAGES, CHANNELS, 4, 3))
    + GENERATOR.normal(0, 1, (IMAGES, CHANNELS, 1, 1))
    + GENERATOR.normal(0, 9, (1, CHANNELS, 1, 1))
).astype(np.float32)
LAYERS = [
    MAPS,
    MAPS * 8,
    # The same everywhere in an image; the same mean in all images; one position; nothing varies.
    np.broadcast_to(MAPS[..., :1, :1], MAPS.shape).copy(),
    MAPS - MAPS.mean((2, 3), keepdims=True),
    MAPS[..., :1, :1].copy(),
    np.full_like(MAPS, 3),
]


def table_of(folder: Path, ends: list[int], resamples: int = 200) -> pd.DataFrame:
    """Measure the layers in shards that end where `ends` says."""
    parts = []
    for first, last in zip([0, *ends], [*ends, IMAGES], strict=True):
        some = written(folder / f"{first}-{last}", [maps[first:last] for maps in LAYERS])
        parts.append(measure_spatial_share(OnLatents(some, first)))
        assert set(parts[-1].columns) == set(SPATIAL_SHARE_PART.columns)
    points = pd.DataFrame(
        {"index": range(len(LAYERS)), **dict.fromkeys(CUT_POINT.keys() - {"index"}, 0)}
    )
    points["height"] = points["width"] = [maps.shape[2] for maps in LAYERS]
    return merge_spatial_share(Parts("m", iter(parts[::-1]), points), resamples, 0)


def directly(maps: np.ndarray) -> tuple[float, float]:
    """Both variances, each with one call, in double precision."""
    wide = maps.astype(np.float64)
    return wide.var(axis=(2, 3)).mean(), wide.var(axis=(0, 2, 3)).mean()


def test_it_is_the_share_of_all_variance_from_any_shards(tmp_path: Path) -> None:
    table = table_of(tmp_path, [])
    assert set(table.columns) == set(SPATIAL_SHARE_TABLE.columns)
    for row, maps in zip(table.to_dict("records")[:4], LAYERS, strict=False):
        within, total = directly(maps)
        assert (row["within"], row["total"]) == pytest.approx((within, total), rel=1e-6, abs=1e-12)
        assert row["share"] == pytest.approx(within / total, rel=1e-6, abs=1e-12)
    assert table["share"][:4].to_list() == pytest.approx([*table["share"][:1]] * 2 + [0, 1], 1e-6)
    assert table.loc[4:, ["share", "ci_low", "ci_high"]].isna().all(axis=None)
    pd.testing.assert_frame_equal(table_of(tmp_path, [5, 7]), table, rtol=1e-12)


def test_the_interval_is_the_bootstrap_over_images(tmp_path: Path) -> None:
    row = table_of(tmp_path, [6], resamples=4000).iloc[0]
    generator, shares = np.random.default_rng(1), []
    for _ in range(4000):
        within, total = directly(MAPS[generator.integers(IMAGES, size=IMAGES)])
        shares.append(within / total)
    expected = np.percentile(shares, [2.5, 97.5])
    # Two draws of resamples: the ends are known to a tenth of the interval.
    tolerance = 0.1 * (expected[1] - expected[0])
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(expected, abs=tolerance)
