"""Similarity of tokens: against all pairs of them, and closed forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.latents import written
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.oversmoothing.compute import (
    mean_token_share,
    measure_mean_token,
    measure_token_similarity,
    token_similarity,
)
from vitscope.measures.oversmoothing.measure import (
    MEAN_TOKEN_PART,
    MEAN_TOKEN_TABLE,
    TOKEN_SIMILARITY_PART,
    TOKEN_SIMILARITY_TABLE,
)
from vitscope.measures.per_image import merge_means
from vitscope.networks.finding.cut_points import CUT_POINT

MAPS = np.random.default_rng(0).normal(1, 2, (6, 5, 4, 3)).astype(np.float32)


def all_pairs(maps: np.ndarray) -> np.ndarray:
    """The mean of all cosines of different tokens, by torch, in double precision."""
    tokens = torch.from_numpy(maps).double().flatten(2).transpose(1, 2)
    cosines = torch.nn.functional.cosine_similarity(tokens[:, :, None], tokens[:, None], dim=-1)
    count = tokens.shape[1]
    pairs = cosines.sum((1, 2)) - cosines.diagonal(dim1=1, dim2=2).sum(1)
    return (pairs / (count * (count - 1))).numpy()


@pytest.mark.parametrize("offset", [0, 1, 100])
def test_it_is_the_mean_of_all_pairs(offset: float) -> None:
    maps = MAPS + np.float32(offset)
    np.testing.assert_allclose(token_similarity(maps), all_pairs(maps), rtol=1e-12)


def test_of_tokens_that_point_one_way_or_two() -> None:
    direction = np.array([3, 4], np.float32)[None, :, None, None]
    lengths = np.array([[1, 2], [5, 0.1]], np.float32)
    same = direction * lengths
    assert token_similarity(same) == pytest.approx(1, abs=1e-12)
    opposite = direction * np.array([[1, -1], [1, -1]], np.float32)
    # Of six pairs, two are alike and four opposite.
    assert token_similarity(opposite) == pytest.approx(-1 / 3, abs=1e-12)


def test_of_tokens_that_have_nothing_in_common() -> None:
    assert token_similarity(np.eye(4, dtype=np.float32).reshape(1, 4, 2, 2)) == pytest.approx(0)


def test_a_token_of_zeros_is_like_no_other() -> None:
    maps = np.ones((1, 3, 1, 3), np.float32)
    maps[..., 1] = 0
    # One pair of three is alike.
    assert token_similarity(maps) == pytest.approx(1 / 3)


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


@pytest.mark.parametrize(
    ("column", "measure", "part", "whole_table", "expected"),
    [
        (
            "similarity",
            measure_token_similarity,
            TOKEN_SIMILARITY_PART,
            TOKEN_SIMILARITY_TABLE,
            all_pairs,
        ),
        ("share", measure_mean_token, MEAN_TOKEN_PART, MEAN_TOKEN_TABLE, of_spectrum),
    ],
)
def test_parts_and_their_mean(
    tmp_path: Path, column: str, measure: Any, part: Any, whole_table: Any, expected: Any
) -> None:
    layers = [MAPS, np.ones((6, 5, 1, 1), np.float32), MAPS + 4]

    def measured(first: int, last: int) -> pd.DataFrame:
        latents = written(tmp_path / f"{first}-{last}", [maps[first:last] for maps in layers])
        return measure(OnLatents(latents, first))

    whole, halves = measured(0, 6), [measured(3, 6), measured(0, 3)]
    assert set(whole.columns) == set(part.columns)
    both = pd.concat(halves).sort_values(["index", "image"], ignore_index=True)
    pd.testing.assert_frame_equal(both, whole, check_exact=True)
    points = pd.DataFrame({"index": range(3), **{c: 0 for c in CUT_POINT if c != "index"}})
    table = merge_means(Parts("m", iter(halves), points), column, resamples=100, seed=0)
    assert set(table.columns) == set(whole_table.columns)
    means = [expected(maps).mean() for maps in (MAPS, MAPS + 4)]
    np.testing.assert_allclose(table[column][[0, 2]], means, rtol=1e-12)
    # A map of one position has none.
    assert table.loc[1, [column, "ci_low", "ci_high"]].isna().all()
    assert (table["ci_low"][[0, 2]] < table[column][[0, 2]]).all()
