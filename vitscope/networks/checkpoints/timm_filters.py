"""timm's own translations of checkpoints, as it runs them where it loads pretrained weights.

A module of timm that has one knows the files of the authors of its networks. It may also change
weights to fit images of another size; that is no translation, and is refused here.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from vitscope.networks.building.compiler import deferred_compiler
from vitscope.networks.checkpoints.entries import StateDict

Filter = Callable[..., StateDict]

FILTERS = ("checkpoint_filter_fn", "_filter_fn", "_filter_torchvision_pretrained")
RESIZING = ("upsample", "grid_sampler")
# Tables that timm may resize without any of torch's operations for that.
TABLE = "position_bias_table"
MOST_UNKNOWN = 8


class ResizedError(Exception):
    """Weights were about to be changed to fit images of another size."""


class Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees what a translation computes: from which tensors, and that it resizes none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.used: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        """Run an operation, and remember the tensors that it was given."""
        if any(word in func.name() for word in RESIZING):
            raise ResizedError
        for argument in args:
            each = argument if isinstance(argument, list | tuple) else [argument]
            self.used.update(id(tensor) for tensor in each if isinstance(tensor, Tensor))
        return func(*args, **(kwargs or {}))


def classes_of_timm(model: nn.Module) -> list[type]:
    """Return the classes of timm that a network is of, its own first."""
    return [kind for kind in type(model).__mro__ if kind.__module__.startswith("timm.models.")]


def find_filter(model: nn.Module) -> Filter | None:
    """Return timm's translation for a network, from the module that its class is of."""
    modules = [sys.modules[kind.__module__] for kind in classes_of_timm(model)]
    found = (getattr(module, name, None) for module in modules for name in FILTERS)
    return next(filter(None, found), None)


def watch_translation(translation: Filter, weights: StateDict) -> tuple[StateDict, set[int]]:
    """Return what a translation gives, and the identities of the tensors that it computed with."""
    with torch.no_grad(), deferred_compiler(), Watched() as watch:
        return translation(weights), watch.used


def apply_filter(translation: Filter, weights: StateDict, model: nn.Module) -> StateDict:
    """Return weights as a translation of timm gives them.

    One that knows all names of its network fails at others: these stay as they are.
    """
    takes = inspect.signature(translation).parameters
    # For DeiT III, whose names no other network has.
    options = {"adapt_layer_scale": True} if "adapt_layer_scale" in takes else {}
    given, unknown = dict(weights), StateDict()
    while True:
        try:
            arguments = (dict(given), model)[: len(takes)]
            found = unknown | translation(*arguments, **options)
            break
        except KeyError as error:
            name = error.args[0]
            if name not in given or len(unknown) == MOST_UNKNOWN:
                raise
            unknown[name] = given.pop(name)
    _check_tables(weights, found)
    return found


def _check_tables(weights: StateDict, found: StateDict) -> None:
    ours = set(map(id, weights.values()))
    if any(name.endswith(TABLE) and id(tensor) not in ours for name, tensor in found.items()):
        raise ResizedError
