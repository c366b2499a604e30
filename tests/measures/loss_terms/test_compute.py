"""Four losses of a network whose parameters all decay, against whole matrices and by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tests.helpers.augmented import augmented
from tests.helpers.splits import CENTER, SPREAD, shapes
from tests.measures.hessian.networks import exact
from vitscope.data.split import select
from vitscope.measures.directions import random_direction
from vitscope.measures.given import OnLoss
from vitscope.measures.loss_terms.compute import measure_loss_terms
from vitscope.measures.loss_terms.measure import TABLE

DECAY, SEED, IMAGES = 0.3, 5, 16
HOW: dict[str, Any] = {"points": 5, "radius": 0.5, "seed": SEED, "steps": 20}
# How the model's training images are drawn from 30, and the measured images from these.
SEEN = {"images": 20, "seed": 1}
DRAWING = {"seed": 3, "recipe": SEEN, "mean": CENTER, "std": SPREAD}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> OnLoss:
    folder = tmp_path_factory.mktemp("terms")
    torch.manual_seed(0)
    network = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 10, bias=False))
    images, targets = 16 * torch.randn(IMAGES, 3, 32, 32), torch.randn(IMAGES, 10).softmax(1)
    drawn = augmented(folder / "augmented", images.numpy(), targets.numpy())
    return OnLoss(network, drawn, torch.device("cpu"), drawn_from=shapes(folder / "split", 30))


@pytest.fixture(scope="module")
def table(given: OnLoss) -> pd.DataFrame:
    return measure_loss_terms(given, [0, 1], 8, DECAY, drawing=DRAWING, **HOW)


# Images and targets of a condition, and what is measured on them without L2 and with it.
Measured = tuple[Tensor, Tensor, pd.DataFrame, pd.DataFrame]


@pytest.fixture(params=[(clean, batch) for clean in (False, True) for batch in (0, 1)])
def measured(given: OnLoss, table: pd.DataFrame, request: pytest.FixtureRequest) -> Measured:
    clean, batch = request.param
    rows = table[(table["clean"] == clean) & (table["batch"] == batch)]
    by_l2 = rows[~rows["l2"]], rows[rows["l2"]]
    if not clean:
        return *given.images.rows(8 * batch, 8 * batch + 8), *by_l2
    assert given.drawn_from
    # Clean images are drawn from the training images, which are drawn from the split.
    chosen = select(30, SEEN["images"], SEEN["seed"])[select(20, IMAGES, 3)][8 * batch :][:8]
    labels = torch.tensor(given.drawn_from.labels[chosen])
    images = given.drawn_from.normalize(chosen, CENTER, SPREAD)
    return images, nn.functional.one_hot(labels, 10), *by_l2


def test_l2_adds_the_weight_decay_to_each_eigenvalue(given: OnLoss, measured: Measured) -> None:
    images, targets, *by_l2 = measured
    without, with_l2 = (rows[rows["of"] == "spectrum"] for rows in by_l2)
    np.testing.assert_allclose(with_l2["x"].to_numpy() - without["x"].to_numpy(), DECAY, atol=1e-5)
    np.testing.assert_allclose(with_l2["value"], without["value"], atol=1e-4)
    for found, decay in ((without, 0.0), (with_l2, DECAY)):
        matrix = exact(given.network, images, targets.float(), decay)
        values = np.linalg.eigvalsh(matrix.astype(float))
        assert found["x"].max() == pytest.approx(values[-1], rel=1e-4)
        assert found["value"].sum() == pytest.approx(1, abs=1e-9)


def test_l2_adds_a_parabola_to_the_slice(given: OnLoss, measured: Measured) -> None:
    images, targets, *by_l2 = measured
    slices = (rows[rows["of"] == "slice"] for rows in by_l2)
    without, with_l2 = (rows.set_index("x")["value"] for rows in slices)
    assert [*without.index] == [-0.5, -0.25, 0, 0.25, 0.5]
    weights = given.network[2].weight.detach()
    along = random_direction("2.weight", weights, SEED, 0)
    for x in without.index:
        moved = (weights + x * along).double()
        logits = given.network[:2](images).double() @ moved.T
        nll = float(cross_entropy(logits, targets.double()))
        assert without[x] == pytest.approx(nll, rel=1e-6)
    parabola = np.polyfit(without.index, with_l2 - without, 4)
    for at, values, tolerance in ((2, along, 1e-5), (4, weights, 1e-6)):
        expected = DECAY / 2 * float(values.double().square().sum())
        assert parabola[at] == pytest.approx(expected, rel=tolerance)
    np.testing.assert_allclose(parabola[:2], 0, atol=1e-4)


def test_results_do_not_depend_on_the_parts(
    given: OnLoss, table: pd.DataFrame, tmp_path: Path
) -> None:
    parts = [measure_loss_terms(given, [each], 8, DECAY, drawing=DRAWING, **HOW) for each in (0, 1)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), table, check_exact=True)
    TABLE.write(table.assign(model="net"), tmp_path / "table.parquet")
