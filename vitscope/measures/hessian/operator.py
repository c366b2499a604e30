"""The Hessian of the loss on batches, which is never formed: it is multiplied with vectors.

The graph of the gradient is built once for each batch, and each product is one backward pass
through it. That was measured to be faster than forward-mode derivatives of the gradient, which
compute the loss again for every vector, and than multiplying with several vectors at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.nn import functional

from vitscope.errors import VitscopeError
from vitscope.measures.hessian.lanczos import Start
from vitscope.networks.building.plain_attention import plain_attention
from vitscope.networks.building.timm_import import import_timm
from vitscope.progress import Progress, Say
from vitscope.training.augmented import Augmented

# How far two evaluations of the same product may differ, as a multiple of the rounding error.
DRIFT = 100


class Hessian:
    """The Hessian, in some parameters, of a loss plus `decay` / 2 times their squares.

    Each parameter tensor has a `decay` of its own.
    """

    def __init__(self, loss: Tensor, parameters: Sequence[Tensor], decay: Sequence[float]) -> None:
        self._parameters = list(parameters)
        self._sizes = [parameter.numel() for parameter in parameters]
        gradient = torch.autograd.grad(
            loss, self._parameters, create_graph=True, materialize_grads=True
        )
        # Where a parameter enters the loss linearly or not at all, its part of the gradient is a
        # constant, which cannot be differentiated: it adds nothing to a product.
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
        """Return the first vector of a Lanczos process with this Hessian."""
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
    """Yield each node of the autograd graph below `root` once."""
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

    The loss is the mean cross-entropy with the targets, which are probabilities, plus
    `weight_decay` / 2 times the sum of squares of the parameters that decay in training.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # Matrices and kernels decay, and neither biases nor norms.
    grouped = import_timm("timm.optim").param_groups_weight_decay
    decay = {
        id(parameter): group["weight_decay"]
        for group in grouped(model, weight_decay)
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
    """Return how far two values differ, as a multiple of the rounding error at some scale."""
    difference = torch.linalg.vector_norm(one - other)
    return float(difference / (scale * torch.finfo(one.dtype).eps)) if difference else 0.0


def require_deterministic(build: Callable[[], Hessian]) -> None:
    """Refuse a Hessian that differs when it is built again, or that is not symmetric."""
    # The first Hessian is deleted before the second is built: the graph of a large model may fill
    # most of the memory.
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


# Before anything is measured, the Hessian is checked on this many images. A few are enough: what
# the check finds is a property of the model, not of the images.
CHECKED = 8


@dataclass(frozen=True)
class Loss:
    """The loss whose Hessian is measured: of a model on batches of images, with weight decay."""

    model: nn.Module
    images: Augmented
    batch_size: int
    weight_decay: float
    device: torch.device | None = None

    def hessian(self, batch: int, images: int | None = None) -> Hessian:
        """Return the Hessian on a batch, or on its first `images` images."""
        first = batch * self.batch_size
        pixels, targets = self.images.rows(first, first + (images or self.batch_size))
        return of_model(
            self.model.to(self.device),
            pixels.to(self.device),
            targets.to(self.device),
            self.weight_decay,
        )


def over_batches(
    loss: Loss, batches: Sequence[int], measure: Callable[[int, Hessian], pd.DataFrame], say: Say
) -> pd.DataFrame:
    """Return what `measure` makes of the Hessian on each batch, after checking the Hessian."""
    checked = min(CHECKED, loss.batch_size)
    require_deterministic(lambda: loss.hessian(batches[0], checked))
    progress = Progress(len(batches), "batches", say)
    tables = []
    for batch in batches:
        tables.append(measure(batch, loss.hessian(batch)))
        progress.advance()
    return pd.concat(tables, ignore_index=True)
