"""Densities of batches: they add up to one, and are the same in any parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.measures.hessian.losses import require_alike_in_parts, silent, small_loss
from vitscope.measures.given import OnLoss
from vitscope.measures.hessian.batches import Loss
from vitscope.measures.hessian.compute_hessian_density import density, measure
from vitscope.measures.hessian.table_hessian_density import TABLE

SETTINGS: dict[str, Any] = {"probes": 2, "steps": 12}


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> Loss:
    return small_loss(tmp_path_factory.mktemp("hessian"))


@settings(max_examples=8, deadline=None)
@given(bounds=st.sets(st.integers(1, 3)))
def test_results_do_not_depend_on_the_parts(loss: Loss, bounds: set[int]) -> None:
    require_alike_in_parts(density, loss, bounds, **SETTINGS)


def test_a_density_adds_up_to_one(loss: Loss) -> None:
    table = density(loss, [0, 1], probes=3, steps=7, say=silent)
    sums = table.groupby(["batch", "probe"])["weight"].agg(["sum", "size"])
    assert sums.index.tolist() == [(batch, probe) for batch in (0, 1) for probe in (0, 1, 2)]
    np.testing.assert_allclose(sums["sum"], 1, atol=1e-12)
    assert (sums["size"] == 7).all()


def test_a_job_measures_some_batches(loss: Loss, tmp_path: Path) -> None:
    given = OnLoss(loss.model, loss.images, torch.device("cpu"))
    table = measure(given, [1, 3], loss.batch_size, loss.weight_decay, **SETTINGS)
    expected = density(loss, [1, 3], **SETTINGS, say=silent)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    TABLE.write(table.assign(model="net", snapshot="end"), tmp_path / "table.parquet")
