"""The values that a network computes from its weights alone, in a pass on shapes alone.

What does not depend on images is computed twice: without values, as all else is, and with them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from vitscope.networks.finding.operations import is_mutable


class Constants:
    """Tensors without values and the same with them: at first pairs, such as weights."""

    def __init__(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        # Tensors without values are kept, so that no identity is used twice.
        self._known = {id(empty): (empty, value) for empty, value in pairs}
        self._device = next((value.device for _, value in pairs), None)
        self._weights = {value.untyped_storage().data_ptr() for _, value in pairs}

    def value(self, tensor: Tensor) -> Tensor:
        """Return a tensor with its values; itself if it has values, or they are not known."""
        _, value = self._known.get(id(tensor), (None, tensor))
        return value

    def run(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return what an operation returns with values; None if some are not known."""
        if self._device is None:
            return None
        changes = is_mutable(function)

        def valued(leaf: Any) -> Any:
            if isinstance(leaf, Tensor):
                value = self.value(leaf)
                is_weight = value.untyped_storage().data_ptr() in self._weights
                # Weights are the network's own, and stay as they are.
                return value.clone() if changes and is_weight else value
            is_empty = isinstance(leaf, torch.device) and leaf.type == "meta"
            return self._device if is_empty else leaf

        with_values = tree_map(valued, (args, dict(kwargs)))
        if any(isinstance(leaf, Tensor) and leaf.is_meta for leaf in tree_leaves(with_values)):
            return None
        return function(*with_values[0], **with_values[1])

    def keep(self, result: Any, valued: Any) -> None:
        """Keep what an operation returned without values and with them."""
        pairs = zip(tree_leaves(result), tree_leaves(valued), strict=True)
        for empty, value in pairs:
            if isinstance(empty, Tensor) and empty.is_meta:
                self._known[id(empty)] = empty, value
