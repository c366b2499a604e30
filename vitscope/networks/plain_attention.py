"""Attention computed step by step, which has a second derivative."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def plain_attention(model: nn.Module) -> Iterator[None]:
    """Switch off fused attention: its backward pass is slow on a CPU, and itself has none."""
    fused = [module for module in model.modules() if getattr(module, "fused_attn", False)]
    for module in fused:
        module.fused_attn = False  # type: ignore[assignment]
    try:
        yield
    finally:
        for module in fused:
            module.fused_attn = True  # type: ignore[assignment]
