"""Norms of tokens: against torch, and outliers that were put there."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.latents import written
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.token_norms.compute import (
    measure_token_norms,
    merge_token_norms,
    outliers,
    token_norms,
)
from vitscope.measures.token_norms.measure import PART, QUANTILES, TABLE
from vitscope.networks.finding.cut_points import CUT_POINT

MAPS = np.random.default_rng(0).normal(1, 2, (6, 5, 4, 3)).astype(np.float32)


def test_it_is_the_norm_over_channels() -> None:
    expected = torch.linalg.vector_norm(torch.from_numpy(MAPS).double(), dim=1).flatten(1)
    np.testing.assert_allclose(token_norms(MAPS), expected, rtol=1e-12)


def test_outliers_are_above_the_threshold_times_the_median_of_their_image() -> None:
    norms = np.array([[1.0, 2, 3, 9, 9.1], [10, 10, 10, 10, 30.1], [0, 0, 0, 0, 1]])
    found = outliers(norms, 3.0)
    # Of the first image the median is 3, of the second 10; in the third anything is above 0.
    assert found.tolist() == [
        [False] * 3 + [False, True],
        [False] * 4 + [True],
        [False] * 4 + [True],
    ]


def test_parts_and_what_they_are_merged_to(tmp_path: Path) -> None:
    # Two cut points; at the second, position 5 of every other image is ten times as large.
    spiked = MAPS.copy()
    spiked[::2, :, 1, 2] *= 30
    layers = [MAPS * 0 + 1, spiked]
    whole = measure_token_norms(OnLatents(written(tmp_path / "whole", layers), 0), 3.0)
    halves = []
    for first in (0, 2):
        file = written(
            tmp_path / f"{first}", [maps[first:][: 4 if first else 2] for maps in layers]
        )
        halves.append(measure_token_norms(OnLatents(file, first), 3.0))
    assert set(whole.columns) == set(PART.columns)
    both = pd.concat(halves).sort_values(["index", "image"], ignore_index=True)
    pd.testing.assert_frame_equal(both, whole, check_exact=True)
    points = pd.DataFrame({"index": [0, 1], **{c: 0 for c in CUT_POINT if c != "index"}})
    points = points.assign(height=4, width=3)
    table = merge_token_norms(
        Parts("m", iter(halves), points), threshold=3.0, resamples=200, seed=0
    )
    assert set(table.columns) == set(TABLE.columns)
    norms = token_norms(layers[1])
    for name, quantile in QUANTILES.items():
        expected = torch.quantile(torch.from_numpy(norms), quantile, dim=1).mean().item()
        assert table[name][1] == pytest.approx(expected, rel=1e-12)
    assert table.loc[0, list(QUANTILES)].tolist() == pytest.approx([np.sqrt(5)] * 5)
    assert table["outliers"].tolist() == pytest.approx([0, 3 / 72])
    assert table["positions"][1] == [0] * 5 + [0.5] + [0] * 6
    assert table["ci_low"][1] < 3 / 72 < table["ci_high"][1]
    TABLE.write(table.assign(name="x", model="m", kind="mlp"), tmp_path / "table.parquet")
    assert TABLE.read(tmp_path / "table.parquet")["positions"][1].tolist() == table["positions"][1]


def test_a_map_of_one_position_has_a_norm_and_no_outlier(tmp_path: Path) -> None:
    part = measure_token_norms(
        OnLatents(written(tmp_path / "file", [MAPS[:, :, :1, :1].copy()]), 0), 3.0
    )
    np.testing.assert_allclose(part["lowest"], part["highest"])
    assert part["positions"].map(len).sum() == 0
