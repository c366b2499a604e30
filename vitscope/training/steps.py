"""Take steps of training by AdamW; on a GPU, record a step once and replay it."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import cos, pi
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from vitscope.networks.running.cuda_graphs import GraphRecording
from vitscope.progress import Say, say_on_stderr
from vitscope.training.recipe import Recipe

# The loss before a step, and the share of images whose class was found.
Taken = tuple[Tensor, Tensor]
# Added to the norm of a gradient, so that dividing by a zero norm stays finite.
TINY = 1e-12


def learning_rate_of_step(recipe: Recipe, progress: float) -> float:
    """Return the learning rate after `progress` epochs: linear warm-up, then a half cosine."""
    peak, last = recipe["learning_rate"], recipe["final_learning_rate"]
    warmup, epochs = recipe["warmup_epochs"], recipe["epochs"]
    if progress < warmup:
        return float(peak * progress / warmup)
    share = (progress - warmup) / (epochs - warmup)
    return float(last + (peak - last) * (1 + cos(pi * share)) / 2)


def optimizer_for_steps(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return AdamW that decays matrices and kernels, but not biases and normalization weights."""
    trained = trained_parameters(model)
    decayed = [each for name, each in trained.items() if decays(name, each)]
    others = [each for name, each in trained.items() if not decays(name, each)]
    groups = [
        {"params": others, "weight_decay": 0.0},
        {"params": decayed, "weight_decay": recipe["weight_decay"]},
    ]
    device = next(model.parameters()).device
    if device.type == "cpu":
        return torch.optim.AdamW(groups, lr=0.0, fused=True)
    # A recorded step reads the learning rate from this tensor.
    rate = torch.zeros((), device=device)
    return torch.optim.AdamW(groups, lr=rate, fused=True, capturable=True)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
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
    """Take one step; return the loss before it, and the share of images whose class was found."""
    optimizer.zero_grad()
    loss, logits = differentiate_for_step(model, images, targets, recipe)
    if recipe["sam"] is not None:
        with stepped_uphill(model, recipe["sam"]):
            optimizer.zero_grad()
            differentiate_for_step(model, images, targets, recipe)
    if recipe["clip_gradient"] is not None:
        nn.utils.clip_grad_norm_(model.parameters(), recipe["clip_gradient"])
    optimizer.step()
    hits = (logits.argmax(1) == targets.argmax(1)).float().mean()
    return loss, hits


def differentiate_for_step(
    model: nn.Module, images: Tensor, targets: Tensor, recipe: Recipe
) -> tuple[Tensor, Tensor]:
    """Add the gradient of the loss to the parameters' `grad`; return the loss and the logits."""
    with torch.autocast(images.device.type, torch.bfloat16, enabled=recipe["bfloat16"]):
        logits = model(images)
    loss = functional.cross_entropy(logits.float(), targets)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), logits.detach()


class TrainingSteps:
    """Takes training steps, in `own_device_stream`; on a GPU, records one step and replays it."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        recipe: Recipe,
        say: Say = say_on_stderr,
    ) -> None:
        self._step = lambda images, targets: take_step(model, optimizer, images, targets, recipe)
        self._optimizer = optimizer
        self._device = next(model.parameters()).device
        self._recording = GraphRecording(lambda text: say(f"a step of training {text}"))

    def take(self, images: Tensor, targets: Tensor, rate: float) -> Taken:
        set_learning_rate(self._optimizer, rate)
        images = images.to(self._device, memory_format=torch.channels_last, non_blocking=True)
        targets = targets.to(self._device, non_blocking=True)
        loss, hits = self._recording.run(self._step, images, targets)
        return loss, hits


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that require gradients, by name, in the model's order."""
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def decays(name: str, parameter: nn.Parameter) -> bool:
    """Tell whether a parameter decays: matrices and kernels do, biases and vectors do not."""
    return parameter.ndim > 1 and not name.endswith(".bias")


@contextmanager
def stepped_uphill(model: nn.Module, radius: float) -> Iterator[None]:
    """For the block, move weights by `radius` along their gradient; then restore them exactly."""
    moved = [parameter for parameter in model.parameters() if parameter.grad is not None]
    kept = [parameter.detach().clone() for parameter in moved]
    counting: list[Any] = [m for m in model.modules() if getattr(m, "track_running_stats", False)]
    with torch.no_grad():
        lengths = torch.stack([torch.linalg.vector_norm(each.grad) for each in moved])
        scale = radius / (torch.linalg.vector_norm(lengths) + TINY)
        for parameter in moved:
            parameter.add_(parameter.grad * scale)
    # Passes in the block normalize by their own batch, and do not update the running statistics.
    for each in counting:
        each.track_running_stats = False
    try:
        yield
    finally:
        for each in counting:
            each.track_running_stats = True
        with torch.no_grad():
            for parameter, weights in zip(moved, kept, strict=True):
                parameter.copy_(weights)
