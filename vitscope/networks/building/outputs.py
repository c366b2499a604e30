"""What networks return: logits, or something that holds them."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from vitscope.errors import VitscopeError


def logits_of(output: Any) -> Tensor:
    """Return the logits from what a network returned: a tensor, or what holds one.

    Of a mapping or an object the entry `logits` is taken, as networks of Hugging Face have it, and
    else its one tensor.
    """
    if isinstance(output, Tensor):
        return output
    mapped = isinstance(output, Mapping)
    named = output.get("logits") if mapped else getattr(output, "logits", None)
    if isinstance(named, Tensor):
        return named
    tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
    if len(tensors) == 1:
        return tensors[0]
    raise VitscopeError(
        f"The network returned a {type(output).__name__} of {len(tensors)} tensors, allowed: the "
        f"logits alone, or an object or mapping that holds them as 'logits'."
    )


def give_logits(network: nn.Module, args: Any, output: Any) -> Tensor:
    """Let a network return the logits alone, as a hook of its forward pass."""
    return logits_of(output)
