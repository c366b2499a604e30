"""What a network computes from what: every operation of one forward pass, recorded.

Torch hands every operation to a dispatch mode, whatever Python code called it, so that any network
can be recorded. The pass runs where the tensors are; on the meta device it computes only shapes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from vitscope.networks.building.compiler import without_compiler
from vitscope.networks.building.outputs import logits_of
from vitscope.networks.building.plain_attention import without_fast_path
from vitscope.networks.finding.constants import Constants
from vitscope.networks.finding.cut_points import Alike, At
from vitscope.networks.finding.operations import plain_name


@dataclass(frozen=True)
class Value:
    """One of the tensors that an operation returned."""

    operation: int
    output: int = 0


@dataclass(frozen=True)
class Constant:
    """A tensor that does not depend on the images; it has values if the pass knows them."""

    shape: tuple[int, ...]
    tensor: Tensor = field(compare=False, repr=False)


@dataclass
class Operation:
    """An operation whose result depends on the images.

    `nth` counts the operations of a module that are `alike`; in `args` and `kwargs`, tensors are
    replaced by the `Value` that they are or by a `Constant`.
    """

    function: Any
    name: str
    module: str
    shapes: tuple[tuple[int, ...], ...]
    alike: Alike
    nth: int
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of what it returns, of the first where these are several."""
        return self.shapes[0]

    def operands(self) -> list[Value]:
        """Return the values that it takes, in order."""
        return [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Value)]


@dataclass(frozen=True)
class Passage:
    """A value that is the first tensor which a module is called with, or which it returns."""

    value: Value
    module: str
    at: At
    call: int


@dataclass
class Dataflow:
    """The operations of a forward pass in order; the first stands for the images."""

    images: int
    operations: list[Operation]
    result: Value
    passages: list[Passage]
    calls: Mapping[str, int]

    def shape_of(self, value: Value) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.operations[value.operation].shapes[value.output]

    def needed(self) -> list[int]:
        """Return the operations that the result depends on, in order."""
        needed = {self.result.operation}
        for index in range(self.result.operation, -1, -1):
            if index in needed:
                needed.update(value.operation for value in self.operations[index].operands())
        return sorted(needed)

    def dominators(self) -> list[int]:
        """Return the operations that lie on every path from the images to the result."""
        order = self.needed()
        last_use = dict.fromkeys(order, 0)
        for index in order:
            for value in self.operations[index].operands():
                last_use[value.operation] = index
        found, furthest = [], 0
        for index in order:
            # An earlier value that is used later is a way around this operation.
            if furthest <= index:
                found.append(index)
            furthest = max(furthest, last_use[index])
        return found


def alike(name: str, tensor: Tensor, images: int) -> Alike:
    """Return what an operation is counted under."""
    return name, tensor.ndim, tensor.numel() // images


def is_bias(name: str, args: Sequence[Any]) -> bool:
    """Tell whether an operation adds a bias: on other devices, that is part of a product."""
    return name == "add" and any(isinstance(arg, Tensor) and arg.ndim < 2 for arg in args)


@torch.no_grad()
def record(
    model: nn.Module,
    images: Tensor,
    run: Callable[[Tensor], Any] | None = None,
    values: Sequence[tuple[Tensor, Tensor]] = (),
) -> Dataflow:
    """Record what `model` computes from `images`; `run` runs it, if not the model itself.

    In a pass on shapes alone, `values` are pairs of tensors without values and with them: what is
    computed of them, and not of images, is computed with values too.
    """
    recorder = _Recorder(images, values)
    # The first operation that a mode sees imports the compiler otherwise.
    with without_compiler(), without_fast_path(), _following(model, recorder), recorder:
        output = (run or model)(images)
    return recorder.finish(logits_of(output))


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records operations; keeps every tensor alive, so that no identity is used twice."""

    def __init__(self, images: Tensor, values: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._constants = Constants(values)
        self.modules: list[str] = [""]
        self._images = len(images)
        self._values: dict[int, Value] = {}
        self._alive: dict[int, Tensor] = {}
        self._sharing: dict[int, list[int]] = {}
        self._counts: Counter[tuple[str, Alike]] = Counter()
        self._operations: list[Operation] = []
        self._passages: list[Passage] = []
        self.calls: Counter[str] = Counter()
        self._add(None, "images", images, (), {})

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation and record it."""
        kwargs = kwargs or {}
        # Looked up before: an operation in place changes what its operands are.
        known = partial(self._known, changes=func._schema.is_mutable)
        known_args, known_kwargs = tree_map(known, (args, kwargs))
        depends = any(isinstance(leaf, Value) for leaf in tree_leaves((known_args, known_kwargs)))
        valued = None if depends else self._constants.run(func, args, kwargs)
        result = func(*args, **kwargs)
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        if valued is not None:
            self._constants.keep(result, valued)
        if tensors:
            name = plain_name(func)
            key = alike(name, tensors[0], self._images)
            self._counts[self.modules[-1], key] += not is_bias(name, args)
            if depends:
                self._add(func, name, result, known_args, known_kwargs)
        return result

    def _known(self, leaf: Any, changes: bool) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        value = self._values.get(id(leaf))
        if value is not None:
            return value
        tensor = self._constants.value(leaf)
        return Constant(tuple(leaf.shape), tensor.clone() if changes else tensor)

    def _add(
        self, func: Any, name: str, result: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        index = len(self._operations)
        key = alike(name, tensors[0], self._images)
        shapes, nth = (
            tuple(tuple(t.shape) for t in tensors),
            self._counts[self.modules[-1], key] - 1,
        )
        self._operations.append(
            Operation(func, name, self.modules[-1], shapes, key, nth, args, kwargs)
        )
        changed = [tensor for tensor in tensors if id(tensor) in self._values]
        for output, tensor in enumerate(tensors):
            self._name(tensor, Value(index, output))
        for tensor in changed:
            self._change_views(tensor, Value(index))

    def _name(self, tensor: Tensor, value: Value) -> None:
        self._values[id(tensor)] = value
        if id(tensor) not in self._alive:
            self._alive[id(tensor)] = tensor
            storage = tensor.untyped_storage()._cdata
            self._sharing.setdefault(storage, []).append(id(tensor))

    def _change_views(self, written: Tensor, value: Value) -> None:
        """Tell that tensors in the same memory as one that was written to have changed too."""
        for identity in self._sharing.get(written.untyped_storage()._cdata, []):
            tensor = self._alive[identity]
            if tensor is written:
                continue
            before = self._values[identity]
            index = len(self._operations)
            key = alike("write", tensor, self._images)
            self._operations.append(
                Operation(
                    None, "write", self.modules[-1], (tuple(tensor.shape),), key, 0, (before, value)
                )
            )
            self._name(tensor, Value(index))

    def note(self, module: str, at: At, tensor: Tensor | None, call: int) -> None:
        """Note that a module is called with a tensor, or returns it."""
        value = None if tensor is None else self._values.get(id(tensor))
        if value is not None:
            self._passages.append(Passage(value, module, at, call))

    def finish(self, logits: Tensor) -> Dataflow:
        """Return what was recorded."""
        result = self._values.get(id(logits))
        if result is None:
            raise ValueError("the result does not depend on the images")
        return Dataflow(self._images, self._operations, result, self._passages, self.calls)


def first_tensor(values: Any) -> Tensor | None:
    """Return the first tensor among what a module is called with or returns."""
    return next((leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)), None)


@contextmanager
def _following(model: nn.Module, recorder: _Recorder) -> Iterator[None]:
    """Tell the recorder which module runs."""
    handles = []

    def follow(name: str, module: nn.Module) -> None:
        def enter(_: nn.Module, args: Any, kwargs: Any) -> None:
            recorder.modules.append(name)
            recorder.note(name, "input", first_tensor((args, kwargs)), recorder.calls[name])

        def leave(_: nn.Module, args: Any, output: Any) -> None:
            recorder.modules.pop()
            recorder.note(name, "output", first_tensor(output), recorder.calls[name])
            recorder.calls[name] += 1

        handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        handles.append(module.register_forward_hook(leave))

    try:
        for name, module in model.named_modules():
            follow(name, module)
        yield
    finally:
        for handle in handles:
            handle.remove()
