"""The largest eigenvalues of batches: those of their loss, in any parts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.measures.hessian.losses import require_alike_in_parts, silent, small_loss
from tests.measures.hessian.networks import (
    DECAY,
    Dropping,
    by_magnitude,
    exact,
)
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnLoss
from vitscope.measures.hessian.batches import Loss
from vitscope.measures.hessian.compute import largest_eigenvalues, measure
from vitscope.measures.hessian.table import TABLE

SETTINGS: dict[str, Any] = {"top": 5, "tolerance": 1e-3, "iterations": 200}


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> Loss:
    return small_loss(tmp_path_factory.mktemp("hessian"))


@settings(max_examples=8, deadline=None)
@given(bounds=st.sets(st.integers(1, 3)))
def test_results_do_not_depend_on_the_parts(loss: Loss, bounds: set[int]) -> None:
    require_alike_in_parts(largest_eigenvalues, loss, bounds, **SETTINGS)


def test_eigenvalues_of_a_batch_are_those_of_its_loss(loss: Loss) -> None:
    table = largest_eigenvalues(loss, [1, 3], **SETTINGS, say=silent)
    assert table["batch"].tolist() == [1] * 5 + [3] * 5
    assert table["rank"].tolist() == [1, 2, 3, 4, 5] * 2
    assert (table["images"] == 10).all()
    assert (table["residual"] <= 1e-3).all()
    assert table["converged"].all()
    for batch in (1, 3):
        images, targets = loss.images.rows(10 * batch, 10 * batch + 10)
        values = by_magnitude(np.linalg.eigvalsh(exact(loss.model, images, targets, DECAY)))
        found = table.loc[table["batch"] == batch, "eigenvalue"]
        np.testing.assert_allclose(found, values[:5], atol=1e-5 * abs(values[0]))


def test_eigenvalues_that_did_not_converge_are_reported(loss: Loss) -> None:
    lines: list[str] = []
    options = {**SETTINGS, "iterations": 6, "tolerance": 1e-6}
    table = largest_eigenvalues(loss, [2], **options, say=lines.append)
    failed = table[~table["converged"]]
    assert 0 < len(failed) == (table["residual"] > 1e-6).sum()
    assert lines[0].startswith(
        f"batch 2: {len(failed)} of 5 eigenvalues are not within 1e-06 after"
    )
    assert lines[0].endswith("raise analysis.hessian.iterations")
    assert lines[1].startswith("1 of 1 batches")


def test_a_network_that_draws_is_refused_before_any_spectrum(loss: Loss) -> None:
    with pytest.raises(VitscopeError, match="another one each time"):
        largest_eigenvalues(replace(loss, model=Dropping()), [0], **SETTINGS, say=silent)


def test_a_job_measures_some_batches(loss: Loss, tmp_path: Path) -> None:
    given = OnLoss(loss.model, loss.images, torch.device("cpu"))
    table = measure(given, [1, 3], loss.batch_size, loss.weight_decay, **SETTINGS)
    expected = largest_eigenvalues(loss, [1, 3], **SETTINGS, say=silent)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    TABLE.write(table.assign(model="net", snapshot="end"), tmp_path / "table.parquet")
