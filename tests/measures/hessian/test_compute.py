"""Eigenvalues, densities and traces: against exact matrices, and in any parts of the batches."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from curvlinops import GGNLinearOperator
from torch import nn
from torch.func import functional_call, jacrev
from torch.nn import functional

from tests.helpers.augmented import augmented
from tests.measures.hessian.networks import (
    DECAY,
    Dropping,
    batch_of,
    by_magnitude,
    every_tiny,
    exact,
    tiny,
)
from tests.measures.test_hessian_operator import matrix_of
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnLoss
from vitscope.measures.hessian.compute import (
    estimate_traces,
    hessian_parts,
    measure_curvature,
    measure_hessian,
    measure_hessian_density,
)
from vitscope.measures.hessian.measure import HESSIAN_TABLE
from vitscope.measures.hessian_operator import gauss_newton_of_model, hessian_of_model
from vitscope.measures.lanczos import largest_eigenvalues
from vitscope.networks.finding.blocks import LAYERS, list_blocks
from vitscope.training.steps import trained_parameters

TOP: dict[str, Any] = {"top": 5, "tolerance": 1e-3, "iterations": 200}
PROBES = {"probes": 2, "steps": 12}


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3))


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> OnLoss:
    model, (images, targets) = small(), batch_of((40, 3, 2, 2))
    path = tmp_path_factory.mktemp("hessian") / "augmented.safetensors"
    drawn = augmented(path, images.numpy(), targets.numpy())
    return OnLoss(model, drawn, torch.device("cpu"))


@pytest.mark.parametrize(
    ("measure", "settings"),
    [(measure_hessian, TOP), (measure_hessian_density, PROBES)],
)
def test_results_do_not_depend_on_the_parts(
    given: OnLoss, measure: Any, settings: dict[str, Any]
) -> None:
    every = [(size, number) for size in (4, 10) for number in range(4)]
    whole = measure(given, every, 10, DECAY, **settings)
    parts = [measure(given, part, 10, DECAY, **settings) for part in (every[:3], every[3:])]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_exact=True)


def of_size(size: int, *numbers: int) -> list[tuple[int, int]]:
    return [(size, number) for number in numbers]


def test_eigenvalues_of_a_batch_are_those_of_its_loss_at_each_size(given: OnLoss) -> None:
    batches = [*of_size(4, 1, 3), *of_size(10, 1, 3)]
    table = measure_hessian(given, batches, 10, DECAY, training_batch=10, **TOP)
    assert table["batch"].tolist() == ([1] * 5 + [3] * 5) * 2
    assert table["rank"].tolist() == [1, 2, 3, 4, 5] * 4
    assert table["images"].tolist() == [4] * 10 + [10] * 10
    assert (table["training_batch"] == 10).all()
    assert (table["residual"] <= 1e-3).all()
    assert table["converged"].all()
    assert not table["bundled"].any()
    for size, number in batches:
        # A small batch has the first images of the large one with its number.
        images, targets = given.images.rows(10 * number, 10 * number + size)
        values = by_magnitude(np.linalg.eigvalsh(exact(given.network, images, targets, DECAY)))
        found = table[(table["batch"] == number) & (table["images"] == size)]
        np.testing.assert_allclose(found["eigenvalue"], values[:5], atol=1e-5 * abs(values[0]))
        trained = trained_parameters(given.network).values()
        squares = sum(float((each**2).sum()) for each in trained if each.ndim > 1)
        nll = float(functional.cross_entropy(given.network(images), targets))
        np.testing.assert_allclose(found["loss"], nll + DECAY / 2 * squares, rtol=1e-6)


class Softmax(nn.Module):
    """A linear model of two features, whose Hessian is known: the mean of (p p' - diag p) x x'."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.linear(images.flatten(1))
        return logits


def test_a_softmax_model_has_the_hessian_of_the_closed_form_at_each_size(tmp_path: Path) -> None:
    """With zero weights both classes have a probability of 1/2: H = [[1, -1], [-1, 1]] x XX'/4n."""
    images = np.random.default_rng(0).normal(size=(60, 1, 1, 2)).astype(np.float32)
    targets = np.tile([[0.3, 0.7]], (60, 1))
    drawn = augmented(tmp_path / "images", images, targets)
    given = OnLoss(Softmax(), drawn, torch.device("cpu"))
    batches = [(size, number) for size in (2, 5, 20) for number in range(3)]
    table = measure_hessian(given, batches, 20, 0.0, top=2, tolerance=1e-3, iterations=10)
    for size, number in batches:
        x = images[20 * number :][:size].reshape(size, 2)
        expected = np.linalg.eigvalsh(x.T @ x / size / 4)[::-1] * 2
        found = table[(table["images"] == size) & (table["batch"] == number)]["eigenvalue"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_bundled_spectrum_is_taken_where_the_loss_is_the_same(
    given: OnLoss, tmp_path: Path
) -> None:
    batches = [*of_size(4, 0, 1), *of_size(10, 0, 1)]
    measured = measure_hessian(given, batches, 10, DECAY, training_batch=10, **TOP)
    kept = measured[(measured["images"] == 10) | (measured["batch"] == 1)]
    marked = kept.assign(model="m", snapshot="end", eigenvalue=kept["eigenvalue"] + 1000)
    HESSIAN_TABLE.write(marked, tmp_path / "spectra.parquet")
    lines: list[str] = []
    options = {**TOP, "training_batch": 10, "bundled": {"file": f"{tmp_path}/spectra.parquet"}}
    told = replace(given, say=lines.append)
    found = measure_hessian(told, batches, 10, DECAY, **options)
    taken = (found["images"] == 10) | (found["batch"] == 1)
    assert found["bundled"].tolist() == taken.tolist()
    expected = measured["eigenvalue"] + 1000 * taken
    np.testing.assert_array_equal(found["eigenvalue"], expected)
    # Of these sizes, one batch is not in the file.
    assert lines[0].startswith("batch 0 of 4 images: ")
    assert "which is measured" in lines[0]
    # Other weights, another decay, a smaller residual or more eigenvalues are measured.
    other = small()
    torch.nn.init.normal_(other[1].weight)
    for changed, decay, change in (
        (replace(told, network=other), DECAY, {}),
        (told, 2 * DECAY, {}),
        (told, DECAY, {"tolerance": 1e-9, "iterations": 20}),
        (told, DECAY, {"top": 6}),
    ):
        again = measure_hessian(changed, batches, 10, decay, **{**options, **change})
        assert not again["bundled"].any()
        assert again["eigenvalue"].max() < 900


def test_eigenvalues_that_did_not_converge_are_reported(given: OnLoss) -> None:
    lines: list[str] = []
    options = {**TOP, "iterations": 6, "tolerance": 1e-6}
    told = replace(given, say=lines.append)
    table = measure_hessian(told, of_size(10, 2), 10, DECAY, **options)
    failed = table[~table["converged"]]
    assert 0 < len(failed) == (table["residual"] > 1e-6).sum()
    assert lines[0].startswith(
        f"batch 2 of 10 images: {len(failed)} of 5 eigenvalues are not within 1e-06 after"
    )
    assert lines[0].endswith("raise analysis.hessian.iterations")
    assert lines[1].startswith("1 of 1 batches")


def test_a_network_that_draws_is_refused_before_any_spectrum(given: OnLoss) -> None:
    with pytest.raises(VitscopeError, match="another one each time"):
        measure_hessian(replace(given, network=Dropping()), of_size(10, 0), 10, DECAY, **TOP)


def test_a_density_adds_up_to_one(given: OnLoss) -> None:
    table = measure_hessian_density(given, of_size(10, 0, 1), 10, DECAY, probes=3, steps=7)
    sums = table.groupby(["batch", "probe"])["weight"].agg(["sum", "size"])
    assert sums.index.tolist() == [(batch, probe) for batch in (0, 1) for probe in (0, 1, 2)]
    np.testing.assert_allclose(sums["sum"], 1, atol=1e-12)
    assert (sums["size"] == 7).all()


SETTINGS: dict[str, Any] = {"probes": 2, "tolerance": 1e-5, "iterations": 100}


def gauss_newton(model: nn.Module, images: Any, targets: Any, decay: float) -> np.ndarray:
    """Return the whole Gauss-Newton matrix, by the Jacobian of the logits of every image."""
    trained = {name: each.detach() for name, each in trained_parameters(model).items()}
    jacobians = jacrev(lambda weights: functional_call(model, weights, (images,)))(trained)
    jacobian = torch.cat([each.flatten(2) for each in jacobians.values()], 2)
    logits = model(images).detach()
    hessians = torch.stack(
        [
            torch.autograd.functional.hessian(
                lambda z, t=target: functional.cross_entropy(z[None], t[None]), each
            )
            for each, target in zip(logits, targets, strict=True)
        ]
    )
    matrix = torch.einsum("nci,ncd,ndj->ij", jacobian, hessians, jacobian) / len(images)
    decays = [torch.full((v.numel(),), decay * (v.ndim > 1)) for v in trained.values()]
    whole: np.ndarray = (matrix + torch.diag(torch.cat(decays).double())).numpy()
    return whole


@every_tiny
def test_the_gauss_newton_part_is_the_exact_one(name: str) -> None:
    model, images, targets = tiny(name)
    expected = gauss_newton(model, images, targets, DECAY)
    operator = gauss_newton_of_model(model, images, targets, DECAY)
    scale = np.abs(expected).max()
    product = matrix_of(operator)
    np.testing.assert_allclose(product, expected, atol=1e-13 * scale)
    assert np.linalg.eigvalsh(product).min() > -1e-13 * scale
    # The Hessian minus this part is far above rounding.
    rest = exact(model, images, targets, DECAY) - expected
    assert np.abs(rest).max() > 1e-3 * scale


def test_curvlinops_finds_the_same_gauss_newton_part() -> None:
    model = small().double()
    images, labels = torch.randn(20, 3, 2, 2).double(), torch.randint(3, (20,))
    targets = functional.one_hot(labels, 3).double()
    operator = gauss_newton_of_model(model, images, targets, 0.0)
    theirs = GGNLinearOperator(
        model, nn.CrossEntropyLoss(), list(model.parameters()), [(images, labels)]
    )
    vectors = torch.eye(operator.size, dtype=torch.float64)
    np.testing.assert_allclose(matrix_of(operator), (theirs @ vectors).detach().numpy(), atol=1e-14)


@every_tiny
@pytest.mark.parametrize("of", [hessian_of_model, gauss_newton_of_model])
def test_the_curvature_within_parameters_is_the_diagonal_block(name: str, of: Any) -> None:
    model, images, targets = tiny(name)
    whole = of(model, images, targets, DECAY)
    matrix = matrix_of(whole)
    ends = np.cumsum([0, *whole.sizes])
    chosen = range(1, len(whole.sizes), 3)
    rows = np.concatenate([np.arange(ends[i], ends[i + 1]) for i in chosen])
    block = whole.within(chosen)
    found = matrix_of(block)
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(found, matrix[np.ix_(rows, rows)], atol=1e-13 * scale)
    best = by_magnitude(np.linalg.eigvalsh(found))[0]
    (value,) = largest_eigenvalues(block, block.start(0), 1, 1e-9, 200).eigenvalues
    assert value == pytest.approx(best, rel=1e-12)


@every_tiny
def test_random_vectors_have_the_trace_as_their_mean(name: str) -> None:
    model, images, targets = tiny(name)
    operator = hessian_of_model(model, images, targets, DECAY)
    matrix = exact(model, images, targets, DECAY)
    # With one vector s of signs, the estimate is the sum of s_i H_ij s_j, not only of the diagonal.
    start = operator.start(7, 0)
    signs = start.signs(start.chance()).numpy()
    terms = np.split(signs * (matrix @ signs), np.cumsum(operator.sizes)[:-1])
    scale = np.abs(matrix).sum()
    np.testing.assert_allclose(
        estimate_traces(operator, 7, 1), [each.sum() for each in terms], atol=1e-13 * scale
    )
    expected = [each.sum() for each in np.split(np.diag(matrix), np.cumsum(operator.sizes)[:-1])]
    estimates = np.stack([estimate_traces(operator, seed, 1) for seed in range(400)])
    error = estimates.std(axis=0, ddof=1) / 20
    assert (np.abs(estimates.mean(axis=0) - expected) <= 4.5 * error + 1e-9 * scale).all()


def given_of(name: str, folder: Path) -> OnLoss:
    model, images, targets = tiny(name)
    # Only some of the parameters are trained.
    drawn = augmented(folder / "augmented.safetensors", images.float().numpy(), targets.numpy())
    settings = {"image_size": 8, "mean": [0.5] * 3}
    points = list_blocks(name, model.float(), settings).points
    return OnLoss(model, drawn, torch.device("cpu"), points)


@every_tiny
def test_parts_of_a_network_add_up(name: str, tmp_path: Path) -> None:
    given = given_of(name, tmp_path)
    table = measure_curvature(given, of_size(3, 0, 1), 3, DECAY, **SETTINGS)
    sums = table.groupby(["batch", "of"])[["parameters", "trace", "gauss_newton_trace"]].sum()
    for _, rows in sums.groupby("batch"):
        block, layer, network = (rows.xs(of, level="of") for of in ("block", "layer", "network"))
        np.testing.assert_allclose(block, network, rtol=1e-12)
        np.testing.assert_allclose(layer, network, rtol=1e-12)
    again = [measure_curvature(given, of_size(3, batch), 3, DECAY, **SETTINGS) for batch in (0, 1)]
    pd.testing.assert_frame_equal(pd.concat(again, ignore_index=True), table, check_exact=True)


@every_tiny
def test_eigenvalues_of_parts_are_those_of_the_exact_hessian(name: str, tmp_path: Path) -> None:
    given = given_of(name, tmp_path)
    table = measure_curvature(given, of_size(3, 1), 3, DECAY, **SETTINGS)
    images, targets = given.images.rows(3, 6)
    model = given.network.double()
    matrix = exact(model, images.double(), targets.double(), DECAY)
    sizes = [each.numel() for each in trained_parameters(model).values()]
    ends = np.cumsum([0, *sizes])
    assert table["converged"].all()
    for part, eigenvalue in zip(hessian_parts(given), table["eigenvalue"], strict=True):
        rows = np.concatenate([np.arange(ends[i], ends[i + 1]) for i in part.parameters])
        values = by_magnitude(np.linalg.eigvalsh(matrix[np.ix_(rows, rows)]))
        assert abs(eigenvalue) == pytest.approx(abs(values[0]), rel=1e-4, abs=1e-6), part
    layers = [part.part for part in hessian_parts(given) if part.of == "layer"]
    assert layers == [layer for layer in LAYERS if layer in layers]


def test_eigenvalues_of_parts_that_did_not_converge_are_reported(tmp_path: Path) -> None:
    lines: list[str] = []
    given = replace(given_of("vit", tmp_path), say=lines.append)
    table = measure_curvature(given, of_size(6, 0), 6, 0.0, probes=1, tolerance=1e-12, iterations=1)
    failed = (~table["converged"]).sum()
    assert failed > 0
    assert lines[0] == (
        f"batch 0: {failed} of {len(table)} eigenvalues have not converged: raise "
        f"analysis.curvature.iterations"
    )
