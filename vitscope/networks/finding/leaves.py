"""What lies in an operation's arguments: `torch.utils._pytree` takes four times as long for it."""

from collections.abc import Callable
from typing import Any


def leaves(values: Any) -> list[Any]:
    """Return all that nested tuples, lists and dicts hold, as `tree_leaves` does."""
    found: list[Any] = []
    _append_leaves(values, found)
    return found


def _append_leaves(values: Any, found: list[Any]) -> None:
    if isinstance(values, tuple | list | dict):
        for each in values.values() if isinstance(values, dict) else values:
            _append_leaves(each, found)
    else:
        found.append(values)


def map_leaves(function: Callable[[Any], Any], values: Any) -> Any:
    """Return nested tuples, lists and dicts with `function` of each leaf, as `tree_map` does."""
    if isinstance(values, dict):
        return {name: map_leaves(function, each) for name, each in values.items()}
    if isinstance(values, tuple | list):
        mapped = [map_leaves(function, each) for each in values]
        return mapped if isinstance(values, list) else tuple(mapped)
    return function(values)
