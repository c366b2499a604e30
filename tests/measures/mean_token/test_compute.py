"""The share of the mean token: against the spectrum of maps, and closed forms."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import written
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.mean_token.compute import mean_token_share, measure_mean_token
from vitscope.measures.mean_token.measure import PART, TABLE
from vitscope.measures.per_image import merge_means
from vitscope.networks.finding.cut_points import CUT_POINT

MAPS = np.random.default_rng(0).normal(1, 2, (6, 5, 4, 3)).astype(np.float32)


def of_spectrum(maps: np.ndarray) -> np.ndarray:
    """The power of maps at the zero frequency, in all of their power."""
    power = np.abs(np.fft.fft2(maps.astype(np.float64))) ** 2
    return power[:, :, 0, 0].sum(1) / power.sum((1, 2, 3))


@pytest.mark.parametrize("offset", [0, 1, 100])
def test_it_is_the_power_at_the_zero_frequency(offset: float) -> None:
    maps = MAPS + np.float32(offset)
    np.testing.assert_allclose(mean_token_share(maps), of_spectrum(maps), rtol=1e-12)


def test_closed_forms() -> None:
    alike = np.broadcast_to(np.float32([[[3.0]], [[4.0]]]), (1, 2, 5, 5))
    assert mean_token_share(alike) == pytest.approx(1, abs=1e-12)
    cancelling = np.float32([[[[1, -1], [-1, 1]]]])
    # Of n tokens at right angles, of one length, the mean has one n-th.
    orthogonal = np.eye(4, dtype=np.float32).reshape(1, 4, 2, 2)
    zeros = np.zeros((1, 3, 2, 2), np.float32)
    found = [*map(mean_token_share, (cancelling, orthogonal, zeros))]
    assert np.concatenate(found) == pytest.approx([0, 1 / 4, 0])


def test_parts_and_their_mean(tmp_path: Path) -> None:
    layers = [MAPS, np.ones((6, 5, 1, 1), np.float32), MAPS + 4]
    parts = [
        measure_mean_token(
            OnLatents(written(tmp_path / f"{first}", [m[first : first + 3] for m in layers]), first)
        )
        for first in (3, 0)
    ]
    assert all(set(part.columns) == set(PART.columns) for part in parts)
    points = pd.DataFrame({"index": range(3), **{c: 0 for c in CUT_POINT if c != "index"}})
    table = merge_means(Parts("m", iter(parts), points), "share", resamples=100, seed=0)
    assert set(table.columns) == set(TABLE.columns)
    expected = [of_spectrum(maps).mean() for maps in (MAPS, MAPS + 4)]
    np.testing.assert_allclose(table["share"][[0, 2]], expected, rtol=1e-12)
    # A map of one position has none.
    assert table.loc[1, ["share", "ci_low", "ci_high"]].isna().all()
