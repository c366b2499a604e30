"""Norms of tokens and how alike they are: against torch, all pairs, spectra, and closed forms."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.latents import written
from vitscope.measures import registry
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.per_image import merge_means
from vitscope.measures.tokens.compute import (
    find_outliers,
    mean_token_share,
    measure_token_norms,
    merge_token_norms,
    token_norms,
    token_similarity,
)
from vitscope.measures.tokens.measure import QUANTILES, TOKEN_NORMS_TABLE
from vitscope.networks.finding.cut_points import CUT_POINT

MAPS = np.random.default_rng(0).normal(1, 2, (6, 5, 4, 3)).astype(np.float32)


POINTS = pd.DataFrame({"index": range(3), **{c: 0 for c in CUT_POINT if c != "index"}})


def part_of(folder: Path, name: str, layers: list[np.ndarray], **settings: float) -> Parts:
    measure = resolve_name(registry.declared(name).measure)
    part = measure(OnLatents(written(folder / "file", layers), 0), **settings)
    return Parts("m", iter([part]), POINTS[: len(layers)].assign(height=4, width=3))


def test_it_is_the_norm_over_channels() -> None:
    expected = torch.linalg.vector_norm(torch.from_numpy(MAPS).double(), dim=1).flatten(1)
    np.testing.assert_allclose(token_norms(MAPS), expected, rtol=1e-12)


def test_outliers_are_above_the_threshold_times_the_median_of_their_image() -> None:
    norms = np.array([[1.0, 2, 3, 9, 9.1], [10, 10, 10, 10, 30.1], [0, 0, 0, 0, 1]])
    found = find_outliers(norms, 3.0)
    # Of the first image the median is 3, of the second 10; in the third anything is above 0.
    assert found.tolist() == [[False] * 4 + [True]] * 3


def test_parts_and_what_they_are_merged_to(tmp_path: Path) -> None:
    # Two cut points; at the second, position 5 of every other image is ten times as large.
    spiked = MAPS.copy()
    spiked[::2, :, 1, 2] *= 30
    layers = [MAPS * 0 + 1, spiked]
    parts = part_of(tmp_path, "token_norms", layers, threshold=3.0)
    table = merge_token_norms(parts, threshold=3.0, resamples=200, seed=0)
    norms = token_norms(layers[1])
    for name, quantile in QUANTILES.items():
        expected = torch.quantile(torch.from_numpy(norms), quantile, dim=1).mean().item()
        assert table[name][1] == pytest.approx(expected, rel=1e-12)
    assert table.loc[0, list(QUANTILES)].tolist() == pytest.approx([np.sqrt(5)] * 5)
    assert table["outliers"].tolist() == pytest.approx([0, 3 / 72])
    assert table["positions"][1] == [0] * 5 + [0.5] + [0] * 6
    assert table["ci_low"][1] < 3 / 72 < table["ci_high"][1]
    file = tmp_path / "table.parquet"
    TOKEN_NORMS_TABLE.write(table.assign(name="x", model="m", kind="mlp"), file)
    assert TOKEN_NORMS_TABLE.read(file)["positions"][1].tolist() == table["positions"][1]


def test_a_map_of_one_position_has_a_norm_and_no_outlier(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS[:, :, :1, :1].copy()])
    part = measure_token_norms(OnLatents(latents, 0), threshold=3.0)
    np.testing.assert_allclose(part["lowest"], part["highest"])
    assert part["positions"].map(len).sum() == 0


def all_pairs(maps: np.ndarray) -> np.ndarray:
    """The mean of all cosines of different tokens, by torch, in double precision."""
    tokens = torch.from_numpy(maps).double().flatten(2).transpose(1, 2)
    cosines = torch.nn.functional.cosine_similarity(tokens[:, :, None], tokens[:, None], dim=-1)
    count = tokens.shape[1]
    pairs = cosines.sum((1, 2)) - cosines.diagonal(dim1=1, dim2=2).sum(1)
    return (pairs / (count * (count - 1))).numpy()


def test_closed_forms_of_the_similarity() -> None:
    direction = np.array([3, 4], np.float32)[None, :, None, None]
    same = direction * np.array([[1, 2], [5, 0.1]], np.float32)
    assert token_similarity(same) == pytest.approx(1, abs=1e-12)
    opposite = direction * np.array([[1, -1], [1, -1]], np.float32)
    # Of six pairs, two are alike and four opposite.
    assert token_similarity(opposite) == pytest.approx(-1 / 3, abs=1e-12)
    assert token_similarity(np.eye(4, dtype=np.float32).reshape(1, 4, 2, 2)) == pytest.approx(0)
    # A token of zeros is like no other: one pair of three is alike.
    maps = np.ones((1, 3, 1, 3), np.float32)
    maps[..., 1] = 0
    assert token_similarity(maps) == pytest.approx(1 / 3)


def of_spectrum(maps: np.ndarray) -> np.ndarray:
    """The power of maps at the zero frequency, in all of their power."""
    power = np.abs(np.fft.fft2(maps.astype(np.float64))) ** 2
    return power[:, :, 0, 0].sum(1) / power.sum((1, 2, 3))


@pytest.mark.parametrize("offset", [0, 1, 100])
def test_values_are_those_of_all_pairs_and_of_the_zero_frequency(offset: float) -> None:
    maps = MAPS + np.float32(offset)
    np.testing.assert_allclose(token_similarity(maps), all_pairs(maps), rtol=1e-12)
    np.testing.assert_allclose(mean_token_share(maps), of_spectrum(maps), rtol=1e-12)


def test_closed_forms_of_the_mean_token() -> None:
    alike = np.broadcast_to(np.float32([[[3.0]], [[4.0]]]), (1, 2, 5, 5))
    assert mean_token_share(alike) == pytest.approx(1, abs=1e-12)
    cancelling = np.float32([[[[1, -1], [-1, 1]]]])
    # Of n tokens at right angles, of one length, the mean has one n-th.
    orthogonal = np.eye(4, dtype=np.float32).reshape(1, 4, 2, 2)
    zeros = np.zeros((1, 3, 2, 2), np.float32)
    found = [*map(mean_token_share, (cancelling, orthogonal, zeros))]
    assert np.concatenate(found) == pytest.approx([0, 1 / 4, 0])


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [("token_similarity", "similarity", all_pairs), ("mean_token", "share", of_spectrum)],
)
def test_parts_and_their_mean(tmp_path: Path, name: str, column: str, expected: Any) -> None:
    layers = [MAPS, np.ones((6, 5, 1, 1), np.float32), MAPS + 4]
    parts = part_of(tmp_path, name, layers)
    table = merge_means(parts, column, resamples=100, seed=0)
    means = [expected(maps).mean() for maps in (MAPS, MAPS + 4)]
    np.testing.assert_allclose(table[column][[0, 2]], means, rtol=1e-12)
    # A map of one position has none.
    assert table.loc[1, [column, "ci_low", "ci_high"]].isna().all()
    assert (table["ci_low"][[0, 2]] < table[column][[0, 2]]).all()
