"""Steps of training: the learning rate, AdamW, and one step with it."""

from math import cos, pi

import torch
from torch import Tensor, nn
from torch.nn import functional

from vitscope.training.recipe import Recipe
from vitscope.training.weight_decay import weight_decay_groups


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
    groups = weight_decay_groups(model, recipe["weight_decay"])
    return torch.optim.AdamW(groups, lr=0.0, fused=True)


def take_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    targets: Tensor,
    recipe: Recipe,
) -> tuple[Tensor, Tensor]:
    """Take one step; return the loss before it, and the share of images whose class was found.

    Of a mixed image, that is the class of its larger part. Nobody has waited for either number.
    """
    with torch.autocast(images.device.type, torch.bfloat16, enabled=recipe["bfloat16"]):
        logits = model(images)
    loss = functional.cross_entropy(logits.float(), targets)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), recipe["clip_gradient"])
    optimizer.step()
    hits = (logits.argmax(1) == targets.argmax(1)).float().mean()
    return loss.detach(), hits
