"""Sharpness-aware minimization (Foret et al., 2021): the gradient is taken uphill of weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

# So that a gradient of zeros has a direction.
TINY = 1e-12


@contextmanager
def uphill(model: nn.Module, radius: float) -> Iterator[None]:
    """Move the weights by `radius` along their gradient for the block, and back to the bit.

    Running statistics are those of the pass before: a pass in the block normalizes by its batch,
    and adds nothing to them.
    """
    moved = [parameter for parameter in model.parameters() if parameter.grad is not None]
    kept = [parameter.detach().clone() for parameter in moved]
    counting: list[Any] = [m for m in model.modules() if getattr(m, "track_running_stats", False)]
    with torch.no_grad():
        lengths = torch.stack([torch.linalg.vector_norm(each.grad) for each in moved])
        scale = radius / (torch.linalg.vector_norm(lengths) + TINY)
        for parameter in moved:
            parameter.add_(parameter.grad * scale)
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
