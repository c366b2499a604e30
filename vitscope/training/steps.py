"""Steps of training by AdamW: one operation after the other, or on a GPU a recording of all."""

from math import cos, pi

import torch
from torch import Tensor, nn
from torch.nn import functional

from vitscope.networks.building.timm_import import import_timm
from vitscope.training.recipe import Recipe
from vitscope.training.sam import uphill

# The loss before a step, and the share of images whose class was found.
Taken = tuple[Tensor, Tensor]

# A library that tunes itself does so in the first steps, which a recording must not hold.
WARM_UP = 3


def learning_rate(recipe: Recipe, progress: float) -> float:
    """Return the learning rate after `progress` epochs: linear warm-up, then a half cosine."""
    peak, last = recipe["learning_rate"], recipe["final_learning_rate"]
    warmup, epochs = recipe["warmup_epochs"], recipe["epochs"]
    if progress < warmup:
        return float(peak * progress / warmup)
    share = (progress - warmup) / (epochs - warmup)
    return float(last + (peak - last) * (1 + cos(pi * share)) / 2)


def optimizer_of(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return AdamW that decays matrices and kernels, and neither biases nor norms."""
    grouped = import_timm("timm.optim").param_groups_weight_decay
    groups = grouped(model, recipe["weight_decay"])
    device = next(model.parameters()).device
    if device.type == "cpu":
        return torch.optim.AdamW(groups, lr=0.0, fused=True)
    # A recording of a step reads the rate where it lies.
    rate = torch.zeros((), device=device)
    return torch.optim.AdamW(groups, lr=rate, fused=True, capturable=True)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all parameters."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def take_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    targets: Tensor,
    recipe: Recipe,
) -> Taken:
    """Take one step; return the loss before it, and the share of images whose class was found.

    The class of a mixed image is the class of its larger part. Both numbers may still be computed.
    """
    optimizer.zero_grad()
    loss, logits = _differentiate(model, images, targets, recipe)
    if recipe["sam"] is not None:
        with uphill(model, recipe["sam"]):
            optimizer.zero_grad()
            _differentiate(model, images, targets, recipe)
    if recipe["clip_gradient"] is not None:
        nn.utils.clip_grad_norm_(model.parameters(), recipe["clip_gradient"])
    optimizer.step()
    hits = (logits.argmax(1) == targets.argmax(1)).float().mean()
    return loss, hits


def _differentiate(
    model: nn.Module, images: Tensor, targets: Tensor, recipe: Recipe
) -> tuple[Tensor, Tensor]:
    """Add the gradient of the loss to that of the parameters; return the loss and the logits."""
    with torch.autocast(images.device.type, torch.bfloat16, enabled=recipe["bfloat16"]):
        logits = model(images)
    loss = functional.cross_entropy(logits.float(), targets)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), logits.detach()


class Steps:
    """Steps of one training. On a GPU they are a CUDA graph: launched as one, instead of by kernel.

    A small network would wait for the processor, which launches a thousand kernels for a step. All
    batches must have the shape of the first.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe) -> None:
        self._model, self._optimizer, self._recipe = model, optimizer, recipe
        self._device = next(model.parameters()).device
        self._graph: torch.cuda.CUDAGraph | None = None

    def take(self, images: Tensor, targets: Tensor, rate: float) -> Taken:
        """Take one step with a learning rate, as `take_step` does."""
        set_learning_rate(self._optimizer, rate)
        images = images.to(self._device, memory_format=torch.channels_last, non_blocking=True)
        targets = targets.to(self._device, non_blocking=True)
        if self._device.type != "cuda":
            return self._take(images, targets)
        if self._graph is None:
            self._graph = self._recorded(images, targets)
        self._images.copy_(images)
        self._targets.copy_(targets)
        self._graph.replay()
        loss, hits = self._taken
        return loss.clone(), hits.clone()

    def _take(self, images: Tensor, targets: Tensor) -> Taken:
        return take_step(self._model, self._optimizer, images, targets, self._recipe)

    def _recorded(self, images: Tensor, targets: Tensor) -> torch.cuda.CUDAGraph:
        # A graph reads and writes where its recording did.
        self._images, self._targets = images.clone(), targets.clone()
        # Of its own: recordings that run at once must not share the workspace of a stream.
        self._aside: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._warm_up()
        graph = torch.cuda.CUDAGraph()
        # Other threads, such as those that bring batches, may allocate meanwhile.
        with torch.cuda.graph(graph, stream=self._aside, capture_error_mode="thread_local"):
            self._taken = self._take(self._images, self._targets)
        return graph

    def _warm_up(self) -> None:
        """Take steps that leave no trace: weights, optimizer and generator are put back."""
        weights = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}
        moments = {
            parameter: {key: value.clone() for key, value in values.items()}
            for parameter, values in self._optimizer.state.items()
        }
        generator = torch.cuda.get_rng_state()
        here = torch.cuda.current_stream()
        self._aside.wait_stream(here)
        with torch.cuda.stream(self._aside):
            for _ in range(WARM_UP):
                self._take(self._images, self._targets)
        here.wait_stream(self._aside)
        self._optimizer.zero_grad()
        self._model.load_state_dict(weights)
        for parameter, values in self._optimizer.state.items():
            for key, value in values.items():
                # Before its first step an optimizer has no moments, which is as if they were zero.
                value.copy_(moments[parameter][key]) if parameter in moments else value.zero_()
        torch.cuda.set_rng_state(generator)
