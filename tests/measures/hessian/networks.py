"""Small networks and operators whose Hessian is known exactly, for tests to compare with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacfwd
from torch.nn import functional

from vitscope.measures.lanczos import Start
from vitscope.networks.building.networks import find_family

DECAY = 0.05
TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit", {"patch_size": 4, "embed_dim": 4, "depth": 2, "num_heads": 2, "mlp_ratio": 2}),
    "resnet": ("resnet", {"block": "basic", "blocks": [1, 1, 1, 1], "width": 1}),
}
every_tiny = pytest.mark.parametrize("name", TINY)


def tiny(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    """Return a network of a few hundred trainable parameters, images and targets, in float64."""
    torch.manual_seed(1)
    family, arch = TINY[name]
    model = find_family(family).build(arch, 3, 8).double().eval()
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False
    for part, values in model.named_parameters():
        # Move away from the initial values: 0 for biases, and 1 for scales of normalization.
        nn.init.normal_(values, float(values.ndim == 1 and "bias" not in part), 0.3)
        values.requires_grad_(not part.startswith(("layer3", "layer4", "patch_embed")))
    targets = torch.rand(6, 3, dtype=torch.float64)
    return model, torch.randn(6, 3, 8, 8, dtype=torch.float64), targets / targets.sum(1, True)


def exact(model: nn.Module, images: Tensor, targets: Tensor, decay: float) -> np.ndarray:
    """Return the whole Hessian, by forward derivatives of the gradient for every parameter."""
    trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    sizes = [values.numel() for values in trained.values()]

    def loss(flat: Tensor) -> Tensor:
        parts = zip(trained.items(), flat.split(sizes), strict=True)
        weights = {name: part.view_as(values) for (name, values), part in parts}
        nll = functional.cross_entropy(functional_call(model, weights, (images,)), targets)
        squares = sum(values.square().sum() for values in weights.values() if values.ndim > 1)
        return nll + decay / 2 * squares

    # Avoid torch.func.hessian: its inner derivative is batched, which is wrong for layer_norm.
    flat = torch.cat([values.flatten() for values in trained.values()])
    matrix: np.ndarray = jacfwd(grad(loss))(flat).numpy()
    return matrix


def by_magnitude(values: np.ndarray) -> np.ndarray:
    return values[np.argsort(-np.abs(values), kind="stable")]


def start(size: int, *seed: int, dtype: torch.dtype = torch.float64) -> Start:
    return Start(size, seed or (0,), torch.zeros(1, dtype=dtype))


def applied(matrix: np.ndarray) -> Callable[[Tensor], Tensor]:
    held = torch.from_numpy(matrix)
    return lambda vector: held @ vector


def batch_of(shape: tuple[int, ...], classes: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    return torch.randn(shape), torch.rand(shape[0], classes).softmax(1)


class Dropping(nn.Module):
    """A classifier with dropout that stays on in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.linear(functional.dropout(images.flatten(1), 0.5, training=True))
