"""Eigenvalues and densities: against numpy, exact second derivatives and another library."""

import numpy as np
import pytest
import torch
from curvlinops import HessianLinearOperator
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn

from tests.helpers.networks import mini
from tests.measures.hessian.networks import (
    DECAY,
    applied,
    batch_of,
    by_magnitude,
    every_tiny,
    exact,
    start,
    tiny,
)
from vitscope.measures import lanczos
from vitscope.measures.hessian_operator import Hessian, hessian_of_model
from vitscope.measures.lanczos import lanczos_quadrature, largest_eigenvalues
from vitscope.scopes.bundled import bundled


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 2**32))
def test_matrices_have_the_eigenvalues_that_numpy_gives(size: int, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(size, size))
    matrix += matrix.T
    found = largest_eigenvalues(applied(matrix), start(size), count, 0.0, 1000)
    expected = by_magnitude(np.linalg.eigvalsh(matrix))[:count]
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-11 * abs(expected[0]))
    assert found.steps == size


def test_equal_eigenvalues_are_all_found_where_the_space_ends() -> None:
    matrix = np.diag([3.0] * 4 + [-2.0] * 3 + [0.0] * 5)
    found = largest_eigenvalues(applied(matrix), start(12), 12, 1e-9, 1000)
    np.testing.assert_allclose(found.eigenvalues, [3] * 4 + [-2] * 3 + [0] * 5, atol=1e-13)
    nothing = largest_eigenvalues(applied(np.zeros((8, 8))), start(8), 3, 1e-9, 1000)
    np.testing.assert_array_equal(nothing.eigenvalues, 0)
    np.testing.assert_array_equal(nothing.residuals, 0)


SLOW = np.r_[np.linspace(0.5, 1, 150), -0.9995, 1.001, 1.002, 1.0025]


def test_restarts_lead_to_the_same_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = by_magnitude(SLOW)[:4]
    apply = applied(np.diag(SLOW))
    free = largest_eigenvalues(apply, start(154), 4, 1e-8, 2000)
    assert free.steps > lanczos.LARGEST_BASIS
    np.testing.assert_allclose(free.eigenvalues, expected, atol=1e-12)
    monkeypatch.setattr(lanczos, "LARGEST_BASIS", 20)
    tight = largest_eigenvalues(apply, start(154), 4, 1e-8, 2000)
    assert tight.steps > free.steps
    np.testing.assert_allclose(tight.eigenvalues, expected, atol=1e-12)
    assert (tight.residuals <= 1e-8).all()


def test_the_residual_is_the_true_one_also_after_restarts() -> None:
    krylov = lanczos._Krylov(applied(np.diag(SLOW)), start(154), 20)
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
    found = largest_eigenvalues(applied(np.diag(SLOW)), start(154), 4, 1e-8, 12)
    assert found.steps == 12
    assert found.residuals.max() > 1e-8
    # An eigenvalue lies within the residual of each approximation.
    off = np.abs(found.eigenvalues[:, None] - SLOW).min(axis=1)
    assert (off <= found.residuals * np.abs(found.eigenvalues[0])).all()


def drawn_spectrum(seed: int) -> np.ndarray:
    """Return a bulk near zero, and 8 to 29 eigenvalues of both signs within 1.3 decades."""
    random = np.random.default_rng(seed)
    bulk = random.normal(0, random.uniform(0.005, 0.05), 1500)
    outside = 10 ** random.uniform(-1.3, 0, random.integers(8, 30))
    return np.r_[bulk, outside * random.choice([1, -1], len(outside), p=[0.7, 0.3])]


def test_none_of_the_largest_is_missed_in_drawn_spectra() -> None:
    """Within 20 steps on average; a stop at the first convergence lacks one in some of them."""
    steps = 0
    for seed in range(300):
        spectrum = drawn_spectrum(seed)
        values = torch.from_numpy(spectrum)
        begin = lanczos.Start(len(spectrum), (seed,), values)
        found = largest_eigenvalues(lambda vector, by=values: by * vector, begin, 5, 1e-3, 400)
        expected = by_magnitude(spectrum)[:5]
        # An error is of the order of the residual's square, over the gap to the next eigenvalue.
        np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-3 * abs(expected[0]))
        steps += found.steps
    assert steps / 300 < 20


def test_an_eigenvalue_that_comes_late_is_waited_for() -> None:
    """The first vector has next to nothing of the second largest, which shows after the others."""
    spectrum = np.r_[100.0, -60, 55, 50, 45, 40, np.linspace(-1, 1, 200)]
    weights = np.r_[1, 2.2e-9, np.ones(204)]

    class Late(lanczos.Start):
        def signs(self, chance: np.random.Generator) -> torch.Tensor:
            return super().signs(chance) * torch.from_numpy(weights)

    values = torch.from_numpy(spectrum)
    begin = Late(len(spectrum), (0,), values)
    found = largest_eigenvalues(lambda vector: values * vector, begin, 5, 1e-2, 400)
    np.testing.assert_allclose(found.eigenvalues, [100, -60, 55, 50, 45], rtol=1e-3)


@every_tiny
def test_networks_have_all_their_exact_eigenvalues(name: str) -> None:
    model, images, targets = tiny(name)
    values = by_magnitude(np.linalg.eigvalsh(exact(model, images, targets, DECAY)))
    assert values.min() < 0 < values.max()
    operator = hessian_of_model(model, images, targets, DECAY)
    found = largest_eigenvalues(operator, operator.start(0), operator.size, 0.0, 10**6)
    scale = np.abs(values[0])
    np.testing.assert_allclose(np.sort(found.eigenvalues), np.sort(values), atol=1e-12 * scale)
    few = largest_eigenvalues(operator, operator.start(0), 5, 1e-6, 200)
    assert few.steps < operator.size / 2
    np.testing.assert_allclose(few.eigenvalues, values[:5], atol=1e-9 * scale)


@every_tiny
def test_a_quadrature_is_exact_for_polynomials(name: str) -> None:
    model, images, targets = tiny(name)
    matrix = exact(model, images, targets, DECAY)
    matrix /= np.abs(matrix).max()
    begin = start(len(matrix), 3)
    vector = begin.signs(begin.chance()).numpy() / np.sqrt(len(matrix))
    nodes, weights = lanczos_quadrature(applied(matrix), begin, 6)
    assert len(nodes) == 6
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    for power in range(12):
        expected = vector @ np.linalg.matrix_power(matrix, power) @ vector
        assert weights @ nodes**power == pytest.approx(expected, rel=1e-11)


def test_the_density_of_a_diagonal_operator_is_its_spectrum() -> None:
    spectrum = {-2.0: 10, 0.0: 70, 0.5: 15, 40.0: 5}
    diagonal = np.repeat(list(spectrum), list(spectrum.values()))
    nodes, weights = lanczos_quadrature(applied(np.diag(diagonal)), start(100), 40)
    np.testing.assert_allclose(nodes, list(spectrum), atol=1e-12)
    np.testing.assert_allclose(weights, np.array([*spectrum.values()]) / 100, atol=1e-12)


@pytest.mark.nightly
def test_curvlinops_and_arpack_find_the_same() -> None:
    # Compare a ResNet only: with layer normalization, the product of curvlinops 3.0.1 with torch
    # 2.13 is 0.2 % off, as finite differences show too.
    model, _ = mini("resnet")
    images, targets = batch_of((4, 3, 32, 32), 10)
    operator = hessian_of_model(model, images, targets, 0.0)
    theirs = HessianLinearOperator(
        model, nn.CrossEntropyLoss(), list(model.parameters()), [(images, targets)]
    ).to_scipy()
    begin = operator.start(5)
    vector = begin.noise(begin.chance())
    reference = torch.from_numpy(theirs @ vector.numpy())
    assert torch.linalg.vector_norm(operator(vector) - reference) < 1e-5 * reference.norm()
    found = largest_eigenvalues(operator, operator.start(0), 3, 1e-4, 100)
    # Start ARPACK from another vector, so that nothing is shared with our run.
    values = eigsh(theirs, k=3, which="LM", tol=1e-5, v0=vector.numpy(), return_eigenvectors=False)
    expected = by_magnitude(values)
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-5 * abs(expected[0]))


def test_single_precision_reaches_the_stated_residual() -> None:
    model, _ = mini("vit")
    images, targets = batch_of((4, 3, 32, 32), 10)
    operator = hessian_of_model(model, images, targets, DECAY)
    krylov = lanczos._Krylov(operator, operator.start(0), 20)
    for _ in range(20):
        krylov.step()
    values, coordinates, residuals = krylov.ritz()
    best = np.argsort(-np.abs(values))[:3]
    for index in best:
        vector = torch.from_numpy(coordinates[:, index]).float() @ krylov._basis[:20]
        true = torch.linalg.vector_norm(operator(vector) - values[index] * vector).item()
        assert abs(true - residuals[index]) < 2e-5 * abs(values[best[0]])


def arpack(operator: Hessian, count: int) -> np.ndarray:
    """Return the largest eigenvalues by ARPACK, from another vector than ours."""
    size = operator.size

    def multiply(vector: np.ndarray) -> np.ndarray:
        product: np.ndarray = operator(torch.from_numpy(vector.ravel().copy())).numpy()
        return product

    products = LinearOperator((size, size), multiply, dtype=np.float64)
    begin = operator.start(12345)
    first = begin.noise(begin.chance()).numpy()
    values = eigsh(products, k=count, which="LM", tol=1e-9, v0=first, return_eigenvectors=False)
    return by_magnitude(values)


@pytest.mark.parametrize(
    ("name", "batches"),
    [
        ("vit_global", 1),
        *(
            pytest.param(name, batches, marks=pytest.mark.nightly)
            for name, batches in (("vit", 14), ("resnet", 13), ("vit_global", 13))
        ),
    ],
)
def test_arpack_in_double_precision_finds_the_same_five(name: str, batches: int) -> None:
    given = bundled(name)
    model, pixels = given["model"].eval(), torch.tensor(np.array(given["images"])).float() / 255
    images = ((pixels if pixels.shape[1] == 3 else pixels.permute(0, 3, 1, 2)) - 0.5) / 0.25
    for batch in range(batches):
        chosen = images[6 * batch :][:6].contiguous()
        targets = torch.rand(6, 10, generator=torch.Generator().manual_seed(batch)).softmax(1)
        single = hessian_of_model(model.float(), chosen, targets, DECAY)
        found = largest_eigenvalues(single, single.start(batch), 5, 1e-3, 200)
        assert (found.residuals <= 1e-3).all()
        exactly = hessian_of_model(model.double(), chosen.double(), targets.double(), DECAY)
        expected = arpack(exactly, 5)
        np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-3 * abs(expected[0]))
