"""The Hessian of the loss on one batch, known by its products with vectors.

The graph of the gradient is built once per batch, and every product is one more backward pass
through it. Measured, that takes less time than the forward derivative of the gradient, which
computes the loss anew for every vector, and than many vectors at once.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.nn import functional

from vitscope.errors import VitscopeError
from vitscope.measures.hessian.lanczos import Start
from vitscope.networks.plain_attention import plain_attention
from vitscope.training.weight_decay import weight_decay_groups

# How far two evaluations of the same product may differ, in units of rounding.
DRIFT = 100


class Hessian:
    """The Hessian of a loss in some parameters, and of `decay` / 2 times their squares."""

    def __init__(self, loss: Tensor, parameters: Sequence[Tensor], decay: Sequence[float]) -> None:
        self._parameters = list(parameters)
        self._sizes = [parameter.numel() for parameter in parameters]
        gradient = torch.autograd.grad(
            loss, self._parameters, create_graph=True, materialize_grads=True
        )
        # What is linear in all parameters, or has none, has no second derivative.
        self._curved = [index for index, part in enumerate(gradient) if part.requires_grad]
        self._gradient = [gradient[index] for index in self._curved]
        self._decay = torch.cat(
            [
                p.detach().new_full((p.numel(),), each)
                for p, each in zip(parameters, decay, strict=True)
            ]
        )

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(self._sizes)

    def start(self, *seed: int) -> Start:
        """Return where a process starts that takes products with this Hessian."""
        return Start(self.size, seed, self._decay)

    def __call__(self, vector: Tensor) -> Tensor:
        """Return the product with a vector."""
        parts = [
            part.view_as(parameter)
            for part, parameter in zip(
                torch.split(vector, self._sizes), self._parameters, strict=True
            )
        ]
        products = torch.autograd.grad(
            self._gradient,
            self._parameters,
            [parts[index] for index in self._curved],
            retain_graph=True,
            materialize_grads=True,
        )
        product = torch.cat([part.reshape(-1) for part in products])
        product = product.addcmul_(self._decay, vector)
        if not torch.linalg.vector_norm(product).isfinite():
            raise VitscopeError(
                "The Hessian of the loss has values that are not finite: check the checkpoint of "
                "the model."
            )
        return product


def _nodes(root: Node | None) -> Iterator[Node]:
    """Yield every node of a graph once."""
    pending, seen = [root], set[Node]()
    while pending:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            pending += [following for following, _ in node.next_functions]


def _require_second_derivatives(loss: Tensor) -> None:
    fused = sorted({n.name() for n in _nodes(loss.grad_fn) if "ScaledDotProduct" in n.name()})
    if fused:
        raise VitscopeError(
            f"The model computes attention by {fused[0]}, which has no second derivative: give its "
            "modules a switch `fused_attn`, as those of timm have one."
        )


def of_model(model: nn.Module, images: Tensor, targets: Tensor, weight_decay: float) -> Hessian:
    """Return the Hessian of a model's loss on a batch, in evaluation mode.

    The loss is the mean cross-entropy of the targets, which are probabilities, and the term that
    weight decay adds: half of the sum of squares, of those parameters that decay in training.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decay = {
        id(parameter): group["weight_decay"]
        for group in weight_decay_groups(model, weight_decay)
        for parameter in group["params"]
    }
    model.eval()
    with plain_attention(model):
        loss = functional.cross_entropy(model(images), targets)
    if not loss.isfinite():
        raise VitscopeError(
            f"The loss of the {type(model).__name__} on augmented images is {loss.item():g}: give "
            "a checkpoint of a training that did not diverge."
        )
    _require_second_derivatives(loss)
    return Hessian(loss, parameters, [decay[id(parameter)] for parameter in parameters])


def _off(one: Tensor, other: Tensor, scale: Tensor) -> float:
    """Return how far two values differ, over a scale, in units of rounding."""
    difference = torch.linalg.vector_norm(one - other)
    return float(difference / (scale * torch.finfo(one.dtype).eps)) if difference else 0.0


def require_deterministic(build: Callable[[], Hessian]) -> None:
    """Refuse a Hessian that is another one when it is built again, or that is not symmetric."""
    # One after the other: the graph of a large model fills much of the memory.
    hessian = build()
    start = hessian.start(0)
    chance = start.chance()
    vector, other = start.signs(chance), start.signs(chance)
    first = hessian(vector)
    del hessian
    hessian = build()
    again, image = hessian(vector), hessian(other)
    size = torch.linalg.vector_norm(first)
    if _off(first, again, size) > DRIFT:
        raise VitscopeError(
            "The Hessian is another one each time that it is evaluated: the model draws at random "
            "in evaluation mode (a dropout that stays on?), so that no spectrum can be measured."
        )
    if _off(first @ other, vector @ image, size * np.sqrt(len(vector))) > DRIFT:
        raise VitscopeError(
            "The Hessian is not symmetric: an operation of the model has a derivative that is not "
            "its own (a rounding, a custom backward pass?), so that no spectrum can be measured."
        )
