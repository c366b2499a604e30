"""Dispatch modes: what sees every operation of a network, and in which module it runs.

Torch hands every operation to a dispatch mode, whatever Python code called it. In inference mode it
hands over the operations that the code named, and else the ones that these are made of: a mode sees
the latter in either, so that what is recorded in one is found again in the other.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from vitscope.errors import VitscopeError
from vitscope.networks.building.compiler import uncompiled
from vitscope.networks.finding.cut_points import Alike, OperationId
from vitscope.networks.finding.operations import is_composite, run_composite

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


class OperationMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation that runs, also those that would be compiled."""

    # Operations with functions for operands, as FlexAttention: else torch refuses them.
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        # One for each time that it was entered.
        self._blocks: list[ExitStack] = []

    def __enter__(self) -> Self:
        """See what runs from here on."""
        self._blocks.append(ExitStack())
        self._blocks[-1].enter_context(uncompiled())
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        """See no more, and remove the hooks."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._blocks.pop().close()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        """Run an operation as the mode does, or what it is made of."""
        if not is_composite(func):
            return self.run(func, *self._without_values(args, kwargs or {}))
        super().__enter__()  # type: ignore[no-untyped-call]
        try:
            return run_composite(func, args, kwargs or {})
        finally:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _without_values(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Leave the values out of what a network makes itself, where all else has none."""
        leaves = [leaf for leaf in tree_leaves((args, dict(kwargs))) if isinstance(leaf, Tensor)]
        empty = [leaf.is_meta for leaf in leaves]
        if not any(empty) or all(empty):
            return args, kwargs

        def without(leaf: Any) -> Any:
            made = isinstance(leaf, Tensor) and not leaf.is_meta and leaf.ndim > 0
            return self.empty(leaf) if made else leaf

        taken: tuple[Args, Kwargs] = tree_map(without, (args, dict(kwargs)))
        return taken

    def empty(self, tensor: Tensor) -> Tensor:
        """Return a tensor without its values."""
        return tensor.to("meta")

    @abstractmethod
    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, and return what it returns."""


class ModuleMode(OperationMode):  # type: ignore[no-untyped-call]
    """Knows which module of a network runs, and which of its operations an operation is.

    Each time that the network itself is called, a pass of as many images begins.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.counts: Counter[tuple[str, Alike]] = Counter()
        self._images = 1
        self._running = [""]

    def __enter__(self) -> Self:
        """Follow which module runs, and see every operation."""
        if isinstance(self.model, ScriptModule):
            raise VitscopeError(
                "the network is scripted by torch.jit, which shows no modules while it runs: give "
                "the network that was scripted."
            )
        super().__enter__()
        remove_later = self._blocks[-1].callback
        for name, module in self.model.named_modules():
            if isinstance(module, ScriptModule):
                continue
            enter, leave = partial(self._enter_module, name), partial(self._leave_module, name)
            hook = module.register_forward_pre_hook(enter, with_kwargs=True)
            remove_later(hook.remove)
            remove_later(module.register_forward_hook(leave).remove)
        return self

    def begin(self, images: int) -> None:
        """Begin a pass of so many images."""
        self._images = images
        self._running = [""]
        self.counts.clear()

    @property
    def module(self) -> str:
        """Return the name of the module that runs."""
        return self._running[-1]

    def count(self, name: str, tensor: Tensor) -> OperationId:
        """Count an operation that returns a tensor, and return which one it is."""
        key = alike(name, tensor, self._images)
        self.counts[self.module, key] += 1
        return self.last(key)

    def last(self, key: Alike) -> OperationId:
        """Return which operation was the last of its kind to be counted in the module."""
        return OperationId(self.module, key, self.counts[self.module, key] - 1)

    def _enter_module(self, name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        if module is self.model:
            images = first_tensor((args, kwargs))
            self.begin(1 if images is None else len(images))
        self._running.append(name)

    def _leave_module(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        self._running.pop()


def alike(name: str, tensor: Tensor, images: int) -> Alike:
    """Return what an operation is counted under."""
    return name, tensor.ndim, tensor.numel() // images


def is_bias(name: str, args: Sequence[Any]) -> bool:
    """Tell whether an operation adds a bias: on other devices, that is part of a product."""
    return name == "add" and any(isinstance(arg, Tensor) and arg.ndim < 2 for arg in args)


def first_tensor(values: Any) -> Tensor | None:
    """Return the first tensor among what a module is called with or returns."""
    return next((leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)), None)
