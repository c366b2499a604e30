"""The Hessian: against closed forms and exact second derivatives, and what cannot be measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.helpers.recording import record_here
from tests.measures.hessian.networks import DECAY, Dropping, batch_of, every_tiny, exact, tiny
from vitscope.errors import VitscopeError
from vitscope.measures.hessian_operator import (
    Curvature,
    Hessian,
    gauss_newton_of_model,
    hessian_of_model,
    require_deterministic_hessian,
)
from vitscope.networks.running.cuda_graphs import WARM_UP


def matrix_of(operator: Curvature) -> np.ndarray:
    units = torch.eye(operator.size, dtype=torch.float64)
    return torch.stack([operator(unit) for unit in units], 1).numpy()


def test_softmax_regression_has_the_hessian_of_the_textbook() -> None:
    torch.manual_seed(0)
    model = nn.Linear(5, 4).double()
    features, targets = torch.randn(30, 5).double(), torch.rand(30, 4).double().softmax(1)
    operator = hessian_of_model(model, features, targets, DECAY)
    probability = model(features).softmax(1).detach()
    curvature = torch.diag_embed(probability) - probability[:, :, None] * probability[:, None]
    extended = torch.cat([features, torch.ones(30, 1)], 1)
    blocks = torch.einsum("nab,ni,nj->aibj", curvature, extended, extended) / 30
    # Parameters come as the matrix, row by row, and then the biases, which do not decay.
    order = [6 * row + column for row in range(4) for column in range(5)]
    order += [6 * row + 5 for row in range(4)]
    expected = blocks.reshape(24, 24)[order][:, order]
    expected += torch.diag(torch.tensor([DECAY] * 20 + [0.0] * 4, dtype=torch.float64))
    np.testing.assert_allclose(matrix_of(operator), expected, atol=1e-15)


@every_tiny
def test_networks_have_the_exact_hessian(name: str) -> None:
    model, images, targets = tiny(name)
    expected = exact(model, images, targets, DECAY)
    operator = hessian_of_model(model, images, targets, DECAY)
    assert operator.size == len(expected) > 100
    scale = np.abs(expected).max()
    np.testing.assert_allclose(matrix_of(operator), expected, atol=1e-13 * scale)


@every_tiny
def test_recorded_products_are_the_same(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Multiply with all parameters, with the last ones alone, and with the Gauss-Newton part."""
    model, images, targets = tiny(name)
    whole = hessian_of_model(model, images, targets, DECAY)
    last = range(len(whole.sizes) // 2, len(whole.sizes))
    for operator in (
        whole,
        whole.within(last),
        gauss_newton_of_model(model, images, targets, DECAY),
    ):
        vectors = torch.randn(WARM_UP + 3, operator.size).double()
        expected = [operator(vector) for vector in vectors]
        with monkeypatch.context() as patch:
            replays = record_here(patch)
            found = [operator(vector) for vector in vectors]
        assert replays == [3]
        assert all(map(torch.equal, found, expected))


class Lopsided(torch.autograd.Function):
    """The identity, with a backward pass that does not return its gradient."""

    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        context.save_for_backward(values)
        return values.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (values,) = context.saved_tensors
        return gradient * values.roll(1)


class Attending(nn.Module):
    """A classifier whose attention is computed by a given function."""

    def __init__(self, attend: Callable[..., Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.attend = nn.Linear(6, 3), attend

    def forward(self, images: Tensor) -> Tensor:
        tokens = images.flatten(2)[:, None] * self.linear.weight
        return self.attend(tokens, tokens, tokens).sum(3)[:, 0]


def by_hand(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1) @ value


def of_a_kernel(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    attended: Tensor = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value)
    return attended[0]


class Multihead(nn.Module):
    """A classifier by the module of torch, which calls a fused kernel where it may."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attention, self.head = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 3)

    def forward(self, images: Tensor) -> Tensor:
        tokens = images.flatten(2)
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return self.head((tokens + attended).mean(1))


def test_dropout_that_stays_on_is_refused() -> None:
    torch.manual_seed(0)
    images, targets = batch_of((8, 3, 2, 2))
    model = Dropping()
    with pytest.raises(VitscopeError, match=r"another one each time .* dropout .* measured\.$"):
        require_deterministic_hessian(lambda: hessian_of_model(model, images, targets, 0.0))


def test_dropout_of_the_model_is_off() -> None:
    images, targets = batch_of((8, 3, 2, 2))
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(12, 3)).train()
    require_deterministic_hessian(lambda: hessian_of_model(model, images, targets, 0.0))


def test_a_derivative_that_is_none_is_refused() -> None:
    weights = torch.rand(60, generator=torch.Generator().manual_seed(0), requires_grad=True)
    cubes = weights.pow(3)
    with pytest.raises(VitscopeError, match=r"^The Hessian is not symmetric: .* measured\.$"):
        require_deterministic_hessian(
            lambda: Hessian(Lopsided.apply(cubes).exp().sum(), [weights], [0.0])
        )
    require_deterministic_hessian(lambda: Hessian(cubes.exp().sum(), [weights], [0.0]))


def test_attention_of_torch_has_the_hessian_of_attention_by_hand() -> None:
    images, targets = batch_of((2, 3, 2, 3))
    found = [
        hessian_of_model(Attending(attend), images, targets, 0.1)
        for attend in (functional.scaled_dot_product_attention, by_hand)
    ]
    for vector in torch.eye(found[0].size):
        torch.testing.assert_close(found[0](vector), found[1](vector), rtol=1e-5, atol=1e-6)


def test_a_module_of_attention_has_the_hessian_of_its_exact_second_derivatives() -> None:
    images, targets = batch_of((2, 3, 2, 3))
    model = Multihead()
    with sdpa_kernel(SDPBackend.MATH):
        expected = exact(model, images, targets, 0.0)
    found = hessian_of_model(model, images, targets, 0.0)
    columns = torch.stack([found(vector) for vector in torch.eye(found.size)])
    np.testing.assert_allclose(columns.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_attention_without_second_derivatives_is_refused() -> None:
    images, targets = batch_of((2, 3, 2, 3))
    with pytest.raises(VitscopeError, match=r"ScaledDotProduct.* has no second derivative"):
        hessian_of_model(Attending(of_a_kernel), images, targets, 0.0)


def test_a_network_that_diverged_is_refused() -> None:
    images, targets = batch_of((8, 3, 2, 2))
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    nn.init.constant_(model[1].weight, float("nan"))
    with pytest.raises(VitscopeError, match=r"The loss of the Sequential .* is nan: give a check"):
        hessian_of_model(model, images, targets, 0.0)


def test_curvature_that_is_not_finite_is_refused() -> None:
    weights = torch.zeros(3, requires_grad=True)
    operator = Hessian(weights.abs().pow(1.5).sum(), [weights], [0.0])
    with pytest.raises(VitscopeError, match="values that are not finite"):
        operator(torch.ones(3))


def test_parameters_without_influence_have_no_curvature() -> None:
    weights = [torch.ones(2, requires_grad=True) for _ in range(3)]
    operator = Hessian(weights[0].pow(2).sum() + weights[1].sum(), weights, [0.0, 0.0, 0.5])
    assert operator(torch.ones(6)).tolist() == [2, 2, 0, 0, 0.5, 0.5]
