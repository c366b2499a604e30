"""The optimizer of a training, AdamW, and its learning rate."""

from math import cos, pi

import torch
from torch import Tensor, nn

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
