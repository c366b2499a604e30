"""The Hessian of the loss on batches, which is never formed: it is multiplied with vectors.

The graph of the gradient is built once for each batch, and each product is one backward pass
through this graph. By measurement, this is faster than forward-mode derivatives of the gradient,
which compute the loss again for every vector, and faster than multiplying with several vectors at
once. On a GPU the backward pass is recorded as a CUDA graph, in the same block of
`own_device_stream` in which the graph of the gradient was built. The network cannot be compiled:
code that `torch.compile` generates has no second derivative.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from vitscope.errors import VitscopeError
from vitscope.measures.given import OnLoss
from vitscope.measures.lanczos import Start
from vitscope.networks.building.networks import plain_attention
from vitscope.networks.running.cuda_graphs import GraphRecording, own_device_stream
from vitscope.progress import Progress, say_on_stderr
from vitscope.training.steps import decays, trained_parameters

# Two evaluations of the same product may differ by at most this multiple of the rounding error.
DRIFT = 100


class Curvature(ABC):
    """Multiplies by a symmetric operator on some parameters, plus a `decay` on the diagonal.

    Each parameter tensor has its own `decay`. `gradient` has a part for each parameter tensor, with
    its autograd graph; products are derivatives of the gradient.
    """

    def __init__(
        self, gradient: Sequence[Tensor], parameters: Sequence[Tensor], decay: Sequence[float]
    ) -> None:
        self._parameters, self._every_decay = list(parameters), list(decay)
        self._every_gradient = list(gradient)
        self.sizes = [parameter.numel() for parameter in parameters]
        # A constant part of the gradient cannot be differentiated, and adds nothing to a product.
        self._curved = [index for index, part in enumerate(gradient) if part.requires_grad]
        self._gradient = [gradient[index] for index in self._curved]
        self._recording = GraphRecording(
            lambda text: say_on_stderr(f"a product of the Hessian {text}")
        )
        each = zip(parameters, decay, strict=True)
        self._decay = torch.cat([p.detach().new_full((p.numel(),), own) for p, own in each])

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def within(self, chosen: Sequence[int]) -> Self:
        """Return the diagonal block of the parameter tensors with the indices `chosen`.

        The block shares the graph. Its backward passes go only as far as these tensors need.
        """
        block = copy(self)
        Curvature.__init__(
            block,
            [self._every_gradient[index] for index in chosen],
            [self._parameters[index] for index in chosen],
            [self._every_decay[index] for index in chosen],
        )
        return block

    @abstractmethod
    def multiply(self, parts: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the product with a vector, without decay.

        Vector and product are split by parameter tensor.
        """

    def start(self, *seed: int) -> Start:
        """Return what draws the random vectors of a Lanczos process with this operator."""
        return Start(self.size, seed, self._decay)

    def __call__(self, vector: Tensor) -> Tensor:
        """Return the product with a vector.

        On a GPU the work is recorded and replayed, since it is the same for every vector.
        """
        (product,) = self._recording.run(self._product, vector)
        if not torch.linalg.vector_norm(product).isfinite():
            raise VitscopeError(
                "The Hessian of the loss has values that are not finite: check the checkpoint of "
                "the model."
            )
        return product

    def _product(self, vector: Tensor) -> tuple[Tensor]:
        split = zip(torch.split(vector, self.sizes), self._parameters, strict=True)
        parts = [part.view_as(parameter) for part, parameter in split]
        product = torch.cat([part.reshape(-1) for part in self.multiply(parts)])
        return (product.addcmul_(self._decay, vector),)

    def _derivative(
        self, of: Sequence[Tensor], by: Sequence[Tensor], vectors: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        return torch.autograd.grad(of, by, vectors, retain_graph=True, materialize_grads=True)


class Hessian(Curvature):
    """Multiplies by the Hessian of a loss with weight decay.

    The weight decay term is `decay` / 2 times the sum of squares of each parameter tensor.
    """

    def __init__(self, loss: Tensor, parameters: Sequence[Tensor], decay: Sequence[float]) -> None:
        gradient = torch.autograd.grad(
            loss, [*parameters], create_graph=True, materialize_grads=True
        )
        super().__init__(gradient, parameters, decay)

    def multiply(self, parts: Sequence[Tensor]) -> Sequence[Tensor]:
        """Differentiate the gradient along a vector."""
        vectors = [parts[index] for index in self._curved]
        return self._derivative(self._gradient, self._parameters, vectors)


class GaussNewton(Curvature):
    """Multiplies by the Gauss-Newton part of the Hessian: the Hessian if logits were linear.

    This part is J' C J, where J is the derivative of the logits with respect to the parameters, and
    C the second derivative of the mean cross-entropy with respect to the logits. `decay` is added
    to the diagonal as in the Hessian. J' C J has no negative eigenvalues, since C has none.
    """

    def __init__(
        self, logits: Tensor, targets: Tensor, parameters: Sequence[Tensor], decay: Sequence[float]
    ) -> None:
        self._logits = logits
        self._probability = logits.detach().softmax(1)
        self._weight = targets.sum(1, keepdim=True) / len(targets)
        # J' u is linear in u. Its derivative with respect to u is J', so that J v needs no forward
        # derivatives.
        self._direction = torch.zeros_like(logits, requires_grad=True)
        gradient = torch.autograd.grad(
            logits, [*parameters], self._direction, create_graph=True, materialize_grads=True
        )
        super().__init__(gradient, parameters, decay)

    def multiply(self, parts: Sequence[Tensor]) -> Sequence[Tensor]:
        """Multiply a vector by J, by C, and by the transpose of J."""
        vectors = [parts[index] for index in self._curved]
        (change,) = self._derivative(self._gradient, [self._direction], vectors)
        p = self._probability
        pull = self._weight * p * (change - (p * change).sum(1, keepdim=True))
        return self._derivative([self._logits], self._parameters, [pull])


def _graph_nodes(root: Node | None) -> Iterator[Node]:
    pending, seen = [root], set[Node]()
    while pending:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            pending += [following for following, _ in node.next_functions]


def _require_second_derivatives(loss: Tensor) -> None:
    fused = sorted({n.name() for n in _graph_nodes(loss.grad_fn) if "ScaledDotProduct" in n.name()})
    if fused:
        raise VitscopeError(
            f"The model computes attention by {fused[0]}, which has no second derivative: let it "
            "call torch.nn.functional.scaled_dot_product_attention, or give its modules a switch "
            "`fused_attn`, as those of timm have one."
        )


@contextmanager
def _differentiable_attention(model: nn.Module) -> Iterator[None]:
    """Compute attention by operations that have a second derivative, wherever a model has it."""
    with plain_attention(model), sdpa_kernel(SDPBackend.MATH):
        yield


def _decay_by_tensor(model: nn.Module, weight_decay: float) -> list[float]:
    trained = trained_parameters(model).items()
    return [weight_decay if decays(name, each) else 0.0 for name, each in trained]


def _logits_and_loss_for_hessian(
    model: nn.Module, images: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    model.eval()
    with _differentiable_attention(model):
        logits = model(images)
    loss = functional.cross_entropy(logits, targets)
    if not loss.isfinite():
        raise VitscopeError(
            f"The loss of the {type(model).__name__} on augmented images is {loss.item():g}: give "
            "a checkpoint of a training that did not diverge."
        )
    _require_second_derivatives(loss)
    return logits, loss


def hessian_of_model(
    model: nn.Module, images: Tensor, targets: Tensor, weight_decay: float
) -> Hessian:
    """Return the Hessian of a model's loss on a batch, in evaluation mode.

    The loss is the mean cross-entropy with the targets, which are probabilities, plus
    `weight_decay` / 2 times the sum of squares of the parameters that decay in training.
    """
    _, loss = _logits_and_loss_for_hessian(model, images, targets)
    parameters = [*trained_parameters(model).values()]
    return Hessian(loss, parameters, _decay_by_tensor(model, weight_decay))


def loss_of_model(model: nn.Module, images: Tensor, targets: Tensor, weight_decay: float) -> float:
    """Return the loss whose Hessian `hessian_of_model` returns."""
    model.eval()
    with torch.no_grad(), _differentiable_attention(model):
        loss = functional.cross_entropy(model(images), targets)
        each = zip(
            trained_parameters(model).values(), _decay_by_tensor(model, weight_decay), strict=True
        )
        squares = [decay / 2 * weights.double().square().sum() for weights, decay in each]
    return float(loss.double() + sum(squares))


def gauss_newton_of_model(
    model: nn.Module, images: Tensor, targets: Tensor, weight_decay: float
) -> GaussNewton:
    logits, _ = _logits_and_loss_for_hessian(model, images, targets)
    parameters = [*trained_parameters(model).values()]
    return GaussNewton(logits, targets, parameters, _decay_by_tensor(model, weight_decay))


def _rounding_errors_apart(one: Tensor, other: Tensor, scale: Tensor) -> float:
    """Return the difference of two values, as a multiple of the rounding error at `scale`."""
    difference = torch.linalg.vector_norm(one - other)
    return float(difference / (scale * torch.finfo(one.dtype).eps)) if difference else 0.0


def require_deterministic_hessian(build: Callable[[], Hessian]) -> None:
    """Refuse a Hessian that changes when it is built again, or that is not symmetric."""
    # Delete the first Hessian before building the second: its graph may fill most of the memory.
    hessian = build()
    start = hessian.start(0)
    chance = start.chance()
    vector, other = start.signs(chance), start.signs(chance)
    first = hessian(vector)
    del hessian
    hessian = build()
    again, image = hessian(vector), hessian(other)
    size = torch.linalg.vector_norm(first)
    if _rounding_errors_apart(first, again, size) > DRIFT:
        raise VitscopeError(
            "The Hessian is another one each time that it is evaluated: the model draws at random "
            "in evaluation mode (a dropout that stays on?), so that no spectrum can be measured."
        )
    if _rounding_errors_apart(first @ other, vector @ image, size * np.sqrt(len(vector))) > DRIFT:
        raise VitscopeError(
            "The Hessian is not symmetric: an operation of the model has a derivative that is not "
            "its own (a rounding, a custom backward pass?), so that no spectrum can be measured."
        )


# The number of images on which the Hessian is checked; more images would reveal no other faults.
CHECKED = 8


# The images of a batch, and its number.
Batch = tuple[int, int]


@dataclass(frozen=True)
class BatchLoss:
    """Gives the Hessian of a model's loss, with weight decay, on batches of images.

    `largest` is the number of images of the largest batch, in which those of the others are nested.
    """

    given: OnLoss
    largest: int
    weight_decay: float

    def value(self, batch: Batch) -> float:
        return loss_of_model(*self._model_and_batch(batch))

    def hessian(self, batch: Batch) -> Hessian:
        return hessian_of_model(*self._model_and_batch(batch))

    def gauss_newton(self, batch: Batch) -> GaussNewton:
        return gauss_newton_of_model(*self._model_and_batch(batch))

    def _model_and_batch(self, batch: Batch) -> tuple[nn.Module, Tensor, Tensor, float]:
        (size, number), device = batch, self.given.device
        pixels, targets = self.given.images.batch(number, size, self.largest)
        network = self.given.network.to(device)
        return network, pixels.to(device), targets.to(device), self.weight_decay

    def over_batches(
        self, batches: Sequence[Batch], measure: Callable[[Batch, Hessian], pd.DataFrame]
    ) -> pd.DataFrame:
        """Check the Hessian, call `measure` for each batch, and return its tables as one."""
        size, number = batches[0]
        checked = min(CHECKED, size), number
        progress, tables = Progress(len(batches), "batches", self.given.say), []
        with own_device_stream(self.given.device):
            require_deterministic_hessian(lambda: self.hessian(checked))
            for batch in batches:
                tables.append(measure(batch, self.hessian(batch)))
                progress.advance()
        return pd.concat(tables, ignore_index=True)
