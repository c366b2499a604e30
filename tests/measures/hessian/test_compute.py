"""Eigenvalues and densities of batches: those of their loss, in any parts."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from tests.helpers.augmented import augmented
from tests.measures.hessian.networks import DECAY, Dropping, batch_of, by_magnitude, exact
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnLoss, Parts
from vitscope.measures.hessian import compute, measure
from vitscope.measures.hessian import compute as compute_hessian_density
from vitscope.measures.hessian import measure as of_density
from vitscope.measures.hessian.merge import merge_hessian

TOP: dict[str, Any] = {"top": 5, "tolerance": 1e-3, "iterations": 200}
PROBES = {"probes": 2, "steps": 12}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> OnLoss:
    """The loss of a small network on 40 images."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3))
    images, targets = batch_of((40, 3, 2, 2))
    path = tmp_path_factory.mktemp("hessian") / "augmented.safetensors"
    drawn = augmented(path, images.numpy(), targets.numpy())
    return OnLoss(model, drawn, torch.device("cpu"))


@pytest.mark.parametrize(
    ("module", "table", "settings"),
    [
        (compute, measure.TABLE, TOP),
        (compute_hessian_density, of_density.HESSIAN_DENSITY_TABLE, PROBES),
    ],
)
def test_results_do_not_depend_on_the_parts(
    given: OnLoss, module: Any, table: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    whole = module.measure(given, range(4), 10, DECAY, **settings)
    parts = [module.measure(given, part, 10, DECAY, **settings) for part in ([0], [1, 2], [3])]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_exact=True)
    table.write(whole.assign(model="net", snapshot="end"), tmp_path / "table.parquet")


def test_eigenvalues_of_a_batch_are_those_of_its_loss(given: OnLoss) -> None:
    table = compute.measure(given, [1, 3], 10, DECAY, **TOP)
    assert table["batch"].tolist() == [1] * 5 + [3] * 5
    assert table["rank"].tolist() == [1, 2, 3, 4, 5] * 2
    assert (table["images"] == 10).all()
    assert (table["residual"] <= 1e-3).all()
    assert table["converged"].all()
    for batch in (1, 3):
        images, targets = given.images.rows(10 * batch, 10 * batch + 10)
        values = by_magnitude(np.linalg.eigvalsh(exact(given.network, images, targets, DECAY)))
        found = table.loc[table["batch"] == batch, "eigenvalue"]
        np.testing.assert_allclose(found, values[:5], atol=1e-5 * abs(values[0]))


def test_eigenvalues_that_did_not_converge_are_reported(given: OnLoss) -> None:
    lines: list[str] = []
    options = {**TOP, "iterations": 6, "tolerance": 1e-6}
    table = compute.measure(replace(given, say=lines.append), [2], 10, DECAY, **options)
    failed = table[~table["converged"]]
    assert 0 < len(failed) == (table["residual"] > 1e-6).sum()
    assert lines[0].startswith(
        f"batch 2: {len(failed)} of 5 eigenvalues are not within 1e-06 after"
    )
    assert lines[0].endswith("raise analysis.hessian.iterations")
    assert lines[1].startswith("1 of 1 batches")


def test_a_network_that_draws_is_refused_before_any_spectrum(given: OnLoss) -> None:
    with pytest.raises(VitscopeError, match="another one each time"):
        compute.measure(replace(given, network=Dropping()), [0], 10, DECAY, **TOP)


def test_a_density_adds_up_to_one(given: OnLoss) -> None:
    table = compute_hessian_density.measure(given, [0, 1], 10, DECAY, probes=3, steps=7)
    sums = table.groupby(["batch", "probe"])["weight"].agg(["sum", "size"])
    assert sums.index.tolist() == [(batch, probe) for batch in (0, 1) for probe in (0, 1, 2)]
    np.testing.assert_allclose(sums["sum"], 1, atol=1e-12)
    assert (sums["size"] == 7).all()


FAILED = "1 of 20 eigenvalues have not converged: raise analysis.hessian.iterations"


def parts() -> Iterator[pd.DataFrame]:
    """Yield four parts of two batches each, of two snapshots."""
    for snapshot in ("warmup", "end"):
        for first in (0, 2):
            rows = pd.DataFrame(
                {"batch": [first] * 5 + [first + 1] * 5, "rank": [*range(1, 6)] * 2}
            )
            converged = (rows["batch"] > 0) | (rows["rank"] != 3) | (snapshot == "warmup")
            yield rows.assign(model="vit", snapshot=snapshot, converged=converged)


def test_parts_of_all_snapshots_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    merged = merge_hessian(Parts("vit", parts(), pd.DataFrame()))
    assert merged["snapshot"].tolist() == ["warmup"] * 20 + ["end"] * 20
    assert merged["batch"].tolist() == [batch for batch in range(4) for _ in range(5)] * 2
    assert capsys.readouterr().out == f"end: {FAILED}\n"
