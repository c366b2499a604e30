"""The Hessian against closed forms, exact second derivatives and another library."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from curvlinops import HessianLinearOperator
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn
from torch.func import functional_call, grad, jacfwd
from torch.nn import functional
from vitscope.measures.hessian.merging import merge, tell_convergence

from tests.helpers.networks import mini
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter
from vitscope.measures.hessian import lanczos as own
from vitscope.measures.hessian.compute import Loss, density, largest_eigenvalues
from vitscope.measures.hessian.lanczos import Start, largest, quadrature
from vitscope.measures.hessian.measure import MEASURE, Settings
from vitscope.measures.hessian.operator import Hessian, of_model, require_deterministic
from vitscope.networks.family import find_family
from vitscope.settings.loading import BUNDLED_STUDIES, load_study
from vitscope.training.augmented import Augmented
from vitscope.workflow.tables import find_table

DECAY = 0.05
TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit", {"patch_size": 4, "embed_dim": 4, "depth": 2, "num_heads": 2, "mlp_ratio": 2}),
    "resnet": ("resnet", {"block": "basic", "blocks": [1, 1, 1, 1], "width": 1}),
}
every_tiny = pytest.mark.parametrize("name", TINY)


def switch_off_fused_attention(model: nn.Module) -> None:
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False


def tiny(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    """A network of a family with a few hundred trainable parameters, and a batch, in float64."""
    torch.manual_seed(1)
    family, arch = TINY[name]
    model = find_family(family).build(arch, 3, 8).double().eval()
    switch_off_fused_attention(model)
    for part, values in model.named_parameters():
        # Away from the start, where biases are zero and norms are one.
        nn.init.normal_(values, float(values.ndim == 1 and "bias" not in part), 0.3)
        values.requires_grad_(not part.startswith(("layer3", "layer4", "patch_embed")))
    targets = torch.rand(6, 3, dtype=torch.float64)
    return model, torch.randn(6, 3, 8, 8, dtype=torch.float64), targets / targets.sum(1, True)


def exact(model: nn.Module, images: Tensor, targets: Tensor, decay: float) -> np.ndarray:
    """The whole Hessian, by the forward derivative of the gradient of every parameter."""
    trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    sizes = [values.numel() for values in trained.values()]

    def loss(flat: Tensor) -> Tensor:
        parts = zip(trained.items(), flat.split(sizes), strict=True)
        weights = {name: part.view_as(values) for (name, values), part in parts}
        nll = functional.cross_entropy(functional_call(model, weights, (images,)), targets)
        squares = sum(values.square().sum() for values in weights.values() if values.ndim > 1)
        return nll + decay / 2 * squares

    # Not torch.func.hessian: its inner derivative is batched, which is wrong for layer_norm.
    flat = torch.cat([values.flatten() for values in trained.values()])
    matrix: np.ndarray = jacfwd(grad(loss))(flat).numpy()
    return matrix


def by_magnitude(values: np.ndarray) -> np.ndarray:
    return values[np.argsort(-np.abs(values), kind="stable")]


def matrix_of(apply: Callable[[Tensor], Tensor], size: int, dtype: torch.dtype) -> np.ndarray:
    return torch.stack([apply(unit) for unit in torch.eye(size, dtype=dtype)], 1).numpy()


def start(size: int, *seed: int, dtype: torch.dtype = torch.float64) -> Start:
    return Start(size, seed or (0,), torch.zeros(1, dtype=dtype))


def applied(matrix: np.ndarray) -> Callable[[Tensor], Tensor]:
    held = torch.from_numpy(matrix)
    return lambda vector: held @ vector


# Closed forms


def test_linear_regression_has_the_hessian_of_the_textbook() -> None:
    torch.manual_seed(0)
    features, values = torch.randn(40, 7, dtype=torch.float64), torch.randn(40, dtype=torch.float64)
    weights = torch.randn(7, dtype=torch.float64, requires_grad=True)
    loss = (features @ weights - values).square().mean()
    own_matrix = matrix_of(Hessian(loss, [weights], [DECAY]), 7, torch.float64)
    expected = 2 / 40 * features.T @ features + DECAY * torch.eye(7, dtype=torch.float64)
    np.testing.assert_allclose(own_matrix, expected, rtol=1e-13, atol=1e-14)


def test_softmax_regression_has_the_hessian_of_the_textbook() -> None:
    torch.manual_seed(0)
    model = nn.Linear(5, 4).double()
    features, targets = torch.randn(30, 5).double(), torch.rand(30, 4).double().softmax(1)
    operator = of_model(model, features, targets, DECAY)
    probability = model(features).softmax(1).detach()
    curvature = torch.diag_embed(probability) - probability[:, :, None] * probability[:, None]
    extended = torch.cat([features, torch.ones(30, 1)], 1)
    blocks = torch.einsum("nab,ni,nj->aibj", curvature, extended, extended) / 30
    # Parameters come as the matrix, row by row, and then the biases, which do not decay.
    order = [6 * row + column for row in range(4) for column in range(5)]
    order += [6 * row + 5 for row in range(4)]
    expected = blocks.reshape(24, 24)[order][:, order]
    expected += torch.diag(torch.tensor([DECAY] * 20 + [0.0] * 4, dtype=torch.float64))
    np.testing.assert_allclose(matrix_of(operator, 24, torch.float64), expected, atol=1e-15)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 2**32))
def test_matrices_have_the_eigenvalues_that_numpy_gives(size: int, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(size, size))
    matrix += matrix.T
    found = largest(applied(matrix), start(size), count, 0.0, 1000)
    expected = by_magnitude(np.linalg.eigvalsh(matrix))[:count]
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-11 * abs(expected[0]))
    assert found.steps == size


def test_equal_eigenvalues_are_all_found_where_the_space_ends() -> None:
    matrix = np.diag([3.0] * 4 + [-2.0] * 3 + [0.0] * 5)
    found = largest(applied(matrix), start(12), 12, 1e-9, 1000)
    np.testing.assert_allclose(found.eigenvalues, [3] * 4 + [-2] * 3 + [0] * 5, atol=1e-13)
    nothing = largest(applied(np.zeros((8, 8))), start(8), 3, 1e-9, 1000)
    np.testing.assert_array_equal(nothing.eigenvalues, 0)
    np.testing.assert_array_equal(nothing.residuals, 0)


SLOW = np.r_[np.linspace(0.5, 1, 150), -0.9995, 1.001, 1.002, 1.0025]


def test_restarts_lead_to_the_same_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = by_magnitude(SLOW)[:4]
    apply = applied(np.diag(SLOW))
    free = largest(apply, start(154), 4, 1e-8, 2000)
    assert free.steps > own.LARGEST_BASIS
    np.testing.assert_allclose(free.eigenvalues, expected, atol=1e-12)
    monkeypatch.setattr(own, "LARGEST_BASIS", 20)
    tight = largest(apply, start(154), 4, 1e-8, 2000)
    assert tight.steps > free.steps
    np.testing.assert_allclose(tight.eigenvalues, expected, atol=1e-12)
    assert (tight.residuals <= 1e-8).all()


def test_the_residual_is_the_true_one_also_after_restarts() -> None:
    krylov = own._Krylov(applied(np.diag(SLOW)), start(154), 20)
    for _ in range(40):
        if krylov.full:
            values, coordinates, _ = krylov.ritz()
            krylov.keep(values[-8:], coordinates[:, -8:])
        krylov.step()
        values, coordinates, residuals = krylov.ritz()
        basis = krylov._basis[: krylov.length].numpy()
        np.testing.assert_allclose(basis @ basis.T, np.eye(krylov.length), atol=1e-13)
        vectors = basis.T @ coordinates
        true = np.linalg.norm(SLOW[:, None] * vectors - values * vectors, axis=0)
        np.testing.assert_allclose(residuals, true, atol=1e-13)


def test_what_does_not_converge_says_so() -> None:
    found = largest(applied(np.diag(SLOW)), start(154), 4, 1e-8, 12)
    assert found.steps == 12
    assert found.residuals.max() > 1e-8
    # There is an eigenvalue within the residual of each.
    off = np.abs(found.eigenvalues[:, None] - SLOW).min(axis=1)
    assert (off <= found.residuals * np.abs(found.eigenvalues[0])).all()


# Networks


@every_tiny
def test_networks_have_the_exact_hessian(name: str) -> None:
    model, images, targets = tiny(name)
    expected = exact(model, images, targets, DECAY)
    operator = of_model(model, images, targets, DECAY)
    assert operator.size == len(expected) > 100
    scale = np.abs(expected).max()
    product = matrix_of(operator, operator.size, torch.float64)
    np.testing.assert_allclose(product, expected, atol=1e-13 * scale)


@every_tiny
def test_networks_have_all_their_exact_eigenvalues(name: str) -> None:
    model, images, targets = tiny(name)
    values = by_magnitude(np.linalg.eigvalsh(exact(model, images, targets, DECAY)))
    assert values.min() < 0 < values.max()
    operator = of_model(model, images, targets, DECAY)
    found = largest(operator, operator.start(0), operator.size, 0.0, 10**6)
    scale = np.abs(values[0])
    np.testing.assert_allclose(np.sort(found.eigenvalues), np.sort(values), atol=1e-12 * scale)
    few = largest(operator, operator.start(0), 5, 1e-6, 200)
    assert few.steps < operator.size / 2
    np.testing.assert_allclose(few.eigenvalues, values[:5], atol=1e-9 * scale)


@every_tiny
def test_moments_of_the_density_are_those_of_the_exact_hessian(name: str) -> None:
    model, images, targets = tiny(name)
    matrix = exact(model, images, targets, DECAY)
    size, probes = len(matrix), 64
    operator = of_model(model, images, targets, DECAY)
    rules = [quadrature(operator, operator.start(0, probe), 8) for probe in range(probes)]
    for power, moment in ((1, matrix), (2, matrix @ matrix)):
        # Of random signs the mean is the trace, and the variance comes from what is off-diagonal.
        off_diagonal = moment - np.diag(np.diag(moment))
        error = np.sqrt(2 * np.square(off_diagonal).sum() / probes) / size
        found = np.mean([weights @ nodes**power for nodes, weights in rules])
        assert abs(found - np.trace(moment) / size) < 3 * error
    squared_norm = np.square(matrix).sum()
    assert np.trace(matrix @ matrix) == pytest.approx(squared_norm)


@every_tiny
def test_a_quadrature_is_exact_for_polynomials(name: str) -> None:
    model, images, targets = tiny(name)
    matrix = exact(model, images, targets, DECAY)
    matrix /= np.abs(matrix).max()
    begin = start(len(matrix), 3)
    vector = begin.signs(begin.chance()).numpy() / np.sqrt(len(matrix))
    nodes, weights = quadrature(applied(matrix), begin, 6)
    assert len(nodes) == 6
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    for power in range(12):
        expected = vector @ np.linalg.matrix_power(matrix, power) @ vector
        assert weights @ nodes**power == pytest.approx(expected, rel=1e-11)


def test_the_density_of_a_diagonal_operator_is_its_spectrum() -> None:
    spectrum = {-2.0: 10, 0.0: 70, 0.5: 15, 40.0: 5}
    diagonal = np.repeat(list(spectrum), list(spectrum.values()))
    nodes, weights = quadrature(applied(np.diag(diagonal)), start(100), 40)
    np.testing.assert_allclose(nodes, list(spectrum), atol=1e-12)
    np.testing.assert_allclose(weights, np.array([*spectrum.values()]) / 100, atol=1e-12)


def a_batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(4, 3, 32, 32), torch.rand(4, 10).softmax(1)


@pytest.mark.nightly
def test_curvlinops_and_arpack_find_the_same() -> None:
    # Of a ResNet alone: the product of curvlinops 3.0.1 with torch 2.13 is 0.2 % off where there is
    # layer normalization, also by finite differences.
    model, _ = mini("resnet")
    images, targets = a_batch()
    operator = of_model(model, images, targets, 0.0)
    theirs = HessianLinearOperator(
        model, nn.CrossEntropyLoss(), list(model.parameters()), [(images, targets)]
    ).to_scipy()
    begin = operator.start(5)
    vector = begin.noise(begin.chance())
    reference = torch.from_numpy(theirs @ vector.numpy())
    assert torch.linalg.vector_norm(operator(vector) - reference) < 1e-5 * reference.norm()
    found = largest(operator, operator.start(0), 3, 1e-4, 100)
    # ARPACK with a start of its own, so that nothing is ours.
    values = eigsh(theirs, k=3, which="LM", tol=1e-5, v0=vector.numpy(), return_eigenvectors=False)
    expected = by_magnitude(values)
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-5 * abs(expected[0]))


def test_products_are_differences_of_gradients() -> None:
    # Of a network whose gradient has no steps, as that of ReLU has.
    model, _ = mini("vit")
    images, targets = a_batch()
    operator = of_model(model, images, targets, 0.0)
    begin = operator.start(5)
    vector = begin.noise(begin.chance())
    product = operator(vector)
    model.double()
    weights = list(model.parameters())
    steps = vector.double().split([each.numel() for each in weights])

    def gradient_at(step: float) -> Tensor:
        with torch.no_grad():
            for each, along in zip(weights, steps, strict=True):
                each.add_(along.view_as(each), alpha=step)
        loss = functional.cross_entropy(model(images.double()), targets.double())
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)])

    ahead, behind = gradient_at(1e-6), gradient_at(-2e-6)
    difference = (ahead - behind) / 2e-6
    assert torch.linalg.vector_norm(product - difference) < 2e-6 * difference.norm()


def test_single_precision_reaches_the_stated_residual() -> None:
    model, _ = mini("vit")
    torch.manual_seed(0)
    images, targets = torch.randn(4, 3, 32, 32), torch.rand(4, 10).softmax(1)
    operator = of_model(model, images, targets, DECAY)
    krylov = own._Krylov(operator, operator.start(0), 40)
    for _ in range(40):
        krylov.step()
    values, coordinates, residuals = krylov.ritz()
    best = np.argsort(-np.abs(values))[:3]
    for index in best:
        vector = torch.from_numpy(coordinates[:, index]).float() @ krylov._basis[:40]
        true = torch.linalg.vector_norm(operator(vector) - values[index] * vector).item()
        assert abs(true - residuals[index]) < 2e-5 * abs(values[best[0]])


# What cannot be measured


class Dropping(nn.Module):
    """A classifier whose dropout nothing switches off."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.linear(functional.dropout(images.flatten(1), 0.5, training=True))


class Lopsided(torch.autograd.Function):
    """The identity with a gradient that is none."""

    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        context.save_for_backward(values)
        return values.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (values,) = context.saved_tensors
        return gradient * values.roll(1)


class Fused(nn.Module):
    """A classifier with attention that has no switch."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, images: Tensor) -> Tensor:
        tokens = images.flatten(2)[:, None] * self.linear.weight
        return functional.scaled_dot_product_attention(tokens, tokens, tokens).sum(3)[:, 0]


def batch_of(shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(shape), torch.rand(shape[0], 3).softmax(1)


def test_dropout_that_stays_on_is_told() -> None:
    torch.manual_seed(0)
    images, targets = batch_of((8, 3, 2, 2))
    model = Dropping()
    with pytest.raises(VitscopeError, match=r"another one each time .* dropout .* measured\.$"):
        require_deterministic(lambda: of_model(model, images, targets, 0.0))


def test_dropout_of_the_model_is_off() -> None:
    images, targets = batch_of((8, 3, 2, 2))
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(12, 3)).train()
    require_deterministic(lambda: of_model(model, images, targets, 0.0))


def test_a_derivative_that_is_none_is_told() -> None:
    weights = torch.rand(60, generator=torch.Generator().manual_seed(0), requires_grad=True)
    cubes = weights.pow(3)
    with pytest.raises(VitscopeError, match=r"^The Hessian is not symmetric: .* measured\.$"):
        require_deterministic(lambda: Hessian(Lopsided.apply(cubes).exp().sum(), [weights], [0.0]))
    require_deterministic(lambda: Hessian(cubes.exp().sum(), [weights], [0.0]))


def test_attention_without_second_derivatives_is_told() -> None:
    images, targets = batch_of((2, 3, 2, 3))
    with pytest.raises(VitscopeError, match=r"ScaledDotProduct.* has no second derivative"):
        of_model(Fused(), images, targets, 0.0)


def test_a_network_that_diverged_is_told() -> None:
    images, targets = batch_of((8, 3, 2, 2))
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    nn.init.constant_(model[1].weight, float("nan"))
    with pytest.raises(VitscopeError, match=r"The loss of the Sequential .* is nan: give a check"):
        of_model(model, images, targets, 0.0)


def test_curvature_that_is_not_finite_is_told() -> None:
    weights = torch.zeros(3, requires_grad=True)
    operator = Hessian(weights.abs().pow(1.5).sum(), [weights], [0.0])
    with pytest.raises(VitscopeError, match="values that are not finite"):
        operator(torch.ones(3))


def test_parameters_without_influence_have_no_curvature() -> None:
    weights = [torch.ones(2, requires_grad=True) for _ in range(3)]
    operator = Hessian(weights[0].pow(2).sum() + weights[1].sum(), weights, [0.0, 0.0, 0.5])
    assert operator(torch.ones(6)).tolist() == [2, 2, 0, 0, 0.5, 0.5]


# Tables


SETTINGS: dict[str, Any] = {"top": 5, "tolerance": 1e-3, "iterations": 200}
MEASURES: dict[str, tuple[Callable[..., pd.DataFrame], dict[str, Any]]] = {
    "hessian": (largest_eigenvalues, SETTINGS),
    "hessian_density": (density, {"probes": 2, "steps": 12}),
}
every_measure = pytest.mark.parametrize("table", MEASURES)


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> Loss:
    """A small network, and 40 images in batches of 10."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3))
    images, targets = batch_of((40, 3, 2, 2))
    path = tmp_path_factory.mktemp("hessian") / "augmented.safetensors"
    tensors = {"images": ("F32", (40, 3, 2, 2)), "targets": ("F32", (40, 3))}
    with TensorWriter(path, tensors, {"data_sha256": "d" * 64}) as writer:
        writer.write("images", 0, images.numpy())
        writer.write("targets", 0, targets.numpy())
    return Loss(model, Augmented(path), batch_size=10, weight_decay=DECAY)


def silent(line: str) -> None:
    """Say nothing."""


@every_measure
@settings(max_examples=8, deadline=None)
@given(bounds=st.sets(st.integers(1, 3)))
def test_results_do_not_depend_on_the_parts(loss: Loss, table: str, bounds: set[int]) -> None:
    measure, options = MEASURES[table]
    whole = measure(loss, range(4), **options, say=silent)
    edges = [0, *sorted(bounds), 4]
    parts = [measure(loss, range(*part), **options, say=silent) for part in pairwise(edges)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_exact=True)


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


def test_eigenvalues_that_did_not_converge_are_told(loss: Loss) -> None:
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


def test_a_density_adds_up_to_one(loss: Loss) -> None:
    table = density(loss, [0, 1], probes=3, steps=7, say=silent)
    sums = table.groupby(["batch", "probe"])["weight"].agg(["sum", "size"])
    assert sums.index.tolist() == [(batch, probe) for batch in (0, 1) for probe in (0, 1, 2)]
    np.testing.assert_allclose(sums["sum"], 1, atol=1e-12)
    assert (sums["size"] == 7).all()


def test_a_network_that_draws_is_told_before_any_spectrum(loss: Loss) -> None:
    with pytest.raises(VitscopeError, match="another one each time"):
        largest_eigenvalues(replace(loss, model=Dropping()), [0], **SETTINGS, say=silent)


def test_parts_of_all_snapshots_are_merged(loss: Loss, tmp_path: Path) -> None:
    table = largest_eigenvalues(loss, range(4), **SETTINGS, say=silent).assign(model="vit")
    table.loc[2, "converged"] = False
    parts = []
    for snapshot in ("warmup", "end"):
        for first in (0, 2):
            rows = table[table["batch"].isin([first, first + 1])].assign(snapshot=snapshot)
            facts = {"data_sha256": "d", "checkpoint_sha256": f"digest of {snapshot}"}
            parts.append(str(tmp_path / f"{snapshot}{first}.parquet"))
            find_table("hessian").write(rows, parts[-1], facts)
    merged, facts = merge("hessian", parts)
    assert merged["snapshot"].tolist() == ["warmup"] * 20 + ["end"] * 20
    assert merged["batch"].tolist() == [batch for batch in range(4) for _ in range(5)] * 2
    assert facts == {
        "data_sha256": "d",
        "snapshot warmup_sha256": "digest of warmup",
        "checkpoint_sha256": "digest of end",
    }
    lines: list[str] = []
    tell_convergence(merged, lines.append)
    told = "1 of 20 eigenvalues have not converged: raise analysis.hessian.iterations"
    assert lines == [f"warmup: {told}", f"end: {told}"]


# Studies


def study_with(tmp_path: Path, figure: dict[str, Any], **changes: Any) -> Path:
    """Write a study of one figure of the bundled models."""
    study = yaml.safe_load((BUNDLED_STUDIES / "mini.yaml").read_text(encoding="utf-8"))
    study["figures"] = {"fig": figure}
    bundled = {"bundled": "resources/checkpoints/mini/vit/warmup.safetensors"}
    study["models"]["vit"]["snapshots"] = {"warmup": bundled}
    study["models"]["resnet"].pop("snapshots", None)
    study["analysis"] = {"hessian": {"batches": 2, "batch_size": 10}}
    for key, value in changes.items():
        study["analysis"][key] = value
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    return path


def test_snapshots_are_those_of_the_figures_in_the_order_of_training(tmp_path: Path) -> None:
    figure = {"kind": "hessian", "models": ["vit"], "snapshots": ["end", "warmup"]}
    study = load_study(study_with(tmp_path, figure))
    assert study.snapshots_of("hessian", "vit") == ["warmup", "end"]
    assert study.snapshots_of("hessian_density", "vit") == []
    del figure["snapshots"]
    study = load_study(study_with(tmp_path, figure))
    assert study.snapshots_of("hessian", "vit") == ["end"]
    assert MEASURE.split(study) == "train"


@pytest.mark.parametrize("kind", MEASURES)
def test_a_snapshot_that_a_model_lacks_is_told(tmp_path: Path, kind: str) -> None:
    figure = {"kind": kind, "models": ["vit", "resnet"], "snapshots": ["warmup"]}
    with pytest.raises(VitscopeError) as caught:
        load_study(study_with(tmp_path, figure))
    assert str(caught.value).endswith(
        "own.yaml: figures.fig.snapshots, for models.resnet: found 'warmup', allowed: end."
    )


def test_other_figures_show_no_snapshots(tmp_path: Path) -> None:
    figure = {"kind": "feature_variance", "models": ["vit"], "snapshots": ["end"]}
    with pytest.raises(VitscopeError, match=r"kinds 'hessian' and 'hessian_density' do: remove it"):
        load_study(study_with(tmp_path, figure))


@pytest.mark.parametrize("kind", MEASURES)
def test_too_few_augmented_images_are_told(tmp_path: Path, kind: str) -> None:
    figure = {"kind": kind, "models": ["vit"]}
    hessian = {"batches": 5, "batch_size": 30}
    fitting = study_with(tmp_path, figure, hessian=hessian, augmented={"images": 150})
    assert load_study(fitting).section("hessian", Settings).batches == 5
    with pytest.raises(VitscopeError) as caught:
        load_study(study_with(tmp_path, figure, hessian=hessian, augmented={"images": 149}))
    assert str(caught.value).endswith(
        "analysis.hessian.batches: found 5 of 30 images each, allowed: at most 4: "
        "analysis.augmented.images is 149."
    )


def test_a_model_without_a_recipe_is_told(tmp_path: Path) -> None:
    path = study_with(tmp_path, {"kind": "hessian", "models": ["vit"]})
    study = yaml.safe_load(path.read_text(encoding="utf-8"))
    del study["training"]
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    with pytest.raises(VitscopeError, match="the key 'training' is missing"):
        load_study(path)
