"""Attention computed step by step, which has a second derivative and can be read."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
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


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Switch off the one operation for a whole block of `nn.TransformerEncoder`.

    It hides the stream, and runs only where a module has no hook: with it, what is read would
    depend on where.
    """
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)
