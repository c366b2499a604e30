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
from tests.helpers.studies import mini_with
from tests.measures.hessian.networks import exact
from vitscope.data.split import select
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnLoss
from vitscope.measures.landscape.compute import direction
from vitscope.measures.loss_terms.compute import measure_loss_terms
from vitscope.measures.loss_terms.measure import TABLE
from vitscope.studies.loading import load_study

DECAY, SEED, IMAGES = 0.3, 5, 16
HOW: dict[str, Any] = {"points": 5, "radius": 0.5, "seed": SEED, "steps": 20}
# Those that a model was trained on, of 30, and then those that are drawn of them.
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


def images_of(given: OnLoss, clean: bool, batch: int) -> tuple[Tensor, Tensor]:
    """Return a batch; clean images are chosen twice."""
    if not clean:
        return given.images.rows(8 * batch, 8 * batch + 8)
    assert given.drawn_from
    rows = select(30, SEEN["images"], SEEN["seed"])[select(20, IMAGES, 3)][8 * batch :][:8]
    labels = torch.tensor(given.drawn_from.labels[rows])
    return given.drawn_from.normalize(rows, CENTER, SPREAD), nn.functional.one_hot(labels, 10)


CONDITIONS = [(clean, batch) for clean in (False, True) for batch in (0, 1)]


@pytest.mark.parametrize(("clean", "batch"), CONDITIONS)
def test_l2_adds_the_weight_decay_to_each_eigenvalue(
    given: OnLoss, table: pd.DataFrame, clean: bool, batch: int
) -> None:
    images, targets = images_of(given, clean, batch)
    rows = table[(table["of"] == "spectrum") & (table["clean"] == clean)]
    rows = rows[rows["batch"] == batch]
    without, with_l2 = (rows[rows["l2"] == l2] for l2 in (False, True))
    np.testing.assert_allclose(with_l2["x"].to_numpy() - without["x"].to_numpy(), DECAY, atol=1e-5)
    np.testing.assert_allclose(with_l2["value"], without["value"], atol=1e-4)
    for found, decay in ((without, 0.0), (with_l2, DECAY)):
        matrix = exact(given.network, images, targets.float(), decay)
        values = np.linalg.eigvalsh(matrix.astype(float))
        assert found["x"].max() == pytest.approx(values[-1], rel=1e-4)
        assert found["value"].sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("clean", "batch"), CONDITIONS)
def test_l2_adds_a_parabola_to_the_slice(
    given: OnLoss, table: pd.DataFrame, clean: bool, batch: int
) -> None:
    images, targets = images_of(given, clean, batch)
    rows = table[(table["of"] == "slice") & (table["clean"] == clean) & (table["batch"] == batch)]
    without, with_l2 = (rows[rows["l2"] == l2].set_index("x")["value"] for l2 in (False, True))
    assert [*without.index] == [-0.5, -0.25, 0, 0.25, 0.5]
    weights = given.network[2].weight.detach()
    along = direction("2.weight", weights, SEED, 0)
    for x in without.index:
        moved = (weights + x * along).double()
        logits = given.network[:2](images).double() @ moved.T
        nll = float(cross_entropy(logits, targets.double()))
        assert without[x] == pytest.approx(nll, rel=1e-6)
    parabola = np.polyfit(without.index, with_l2 - without, 4)
    assert parabola[2] == pytest.approx(DECAY / 2 * float(along.double().square().sum()), rel=1e-5)
    assert parabola[4] == pytest.approx(
        DECAY / 2 * float(weights.double().square().sum()), rel=1e-6
    )
    np.testing.assert_allclose(parabola[:2], 0, atol=1e-4)


def test_results_do_not_depend_on_the_parts(
    given: OnLoss, table: pd.DataFrame, tmp_path: Path
) -> None:
    parts = [measure_loss_terms(given, [each], 8, DECAY, drawing=DRAWING, **HOW) for each in (0, 1)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), table, check_exact=True)
    TABLE.write(table.assign(model="net"), tmp_path / "table.parquet")


@pytest.mark.parametrize("loss", [{"weight_decay": 0.1, "augment": "none"}, {"weight_decay": 0.0}])
def test_a_loss_that_lacks_a_term_is_refused(tmp_path: Path, loss: dict[str, Any]) -> None:
    change = {"loss": {"augment": {"mixup": 0.8}, **loss}}
    figures = {"terms": {"kind": "loss_terms", "models": ["vit"]}}
    with pytest.raises(VitscopeError, match="'loss_terms' leave out augmentation and weight decay"):
        load_study(mini_with(tmp_path, figures=figures, **change))
