"""Record a pass of a network as operations: who computes what from what."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from vitscope.errors import VitscopeError
from vitscope.image_size import height_and_width
from vitscope.networks.building.networks import ends_of, own_type, same_bytes, without_fast_path
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.cut_points import At, OperationId
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Passage, Value
from vitscope.networks.finding.known_shapes import KnownShapes
from vitscope.networks.finding.leaves import leaves, map_leaves
from vitscope.networks.finding.operations import Args, Kwargs

Run = Callable[[Tensor], Any]
Result = TypeVar("Result")
_RECORDING: ContextVar["_DataflowRecorder | None"] = ContextVar("vitscope_recording", default=None)


@torch.no_grad()
def record_dataflow(
    model: nn.Module,
    images: Tensor,
    run: Callable[[Tensor], Any] | None = None,
    values: Sequence[tuple[Tensor, Tensor]] = (),
) -> Dataflow:
    """Record what `model`, or `run` if given, computes from `images`.

    For a pass on shapes alone, `values` pairs each tensor without values with the same tensor that
    has them.
    """
    recorder = _DataflowRecorder(model, images, values)
    token = _RECORDING.set(recorder)
    try:
        with without_fast_path(), recorder:
            output = (run or model)(images)
    finally:
        _RECORDING.reset(token)
    return recorder.finish_pass(ends_of(output))


def is_recording() -> bool:
    """Return whether a pass runs that shows how the network is built, whatever changes others."""
    return _RECORDING.get() is not None


def note_tensor(tensor: Tensor) -> tuple[Value | None, int, str] | None:
    """Return what a tensor is in the pass that is being recorded; None if no pass is.

    A function that a network calls is no operation of torch: what wraps it notes what it takes. The
    result is the value, None if it does not depend on the images; the number of operations until
    then; and the module that runs.
    """
    recorder = _RECORDING.get()
    return recorder.note_tensor(tensor) if recorder else None


class _DataflowRecorder(ops.ModuleMode):  # type: ignore[no-untyped-call]
    """Records operations; keeps every tensor alive, so that no `id` is used twice."""

    def __init__(
        self, model: nn.Module, images: Tensor, values: Sequence[tuple[Tensor, Tensor]]
    ) -> None:
        super().__init__(model)
        self.begin(len(images))
        self._constants = _DataflowConstants(values)
        self._values: dict[int, Value] = {}
        self._alive: dict[int, Tensor] = {}
        self._sharing: dict[int, list[int]] = {}
        self._written: dict[int, tuple[Value, Tensor]] = {}
        self._operations: list[Operation] = []
        self._passages: list[Passage] = []
        self._calls: Counter[str] = Counter()
        self._begun: dict[str, int] = {}
        self._add_operation(None, "images", images, (), {})

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        ops.refuse_unknown_operator(function)
        # Look up the operands first, since an in-place operation changes them.
        known = partial(self._value_or_constant, changes=ops.is_mutable(function))
        known_args, known_kwargs = map_leaves(known, (args, kwargs))
        depends = ops.operation_name(function) not in ops.OF_SHAPES and any(
            isinstance(leaf, Value) for leaf in leaves((known_args, known_kwargs))
        )
        valued = None if depends else self._constants.run_with_values(function, args, kwargs)
        result = function(*args, **kwargs)
        tensor = ops.first_tensor(result)
        if valued is not None:
            self._constants.keep_values(result, valued)
        if tensor is not None:
            name = ops.operation_name(function)
            if not ops.is_bias(name, args):
                self.count(name, tensor)
            if depends:
                self._add_operation(function, name, result, known_args, known_kwargs)
        return result

    def empty(self, tensor: Tensor) -> Tensor:
        empty = super().empty(tensor)
        self._constants.keep_values(empty, tensor)
        return empty

    def note_tensor(self, tensor: Tensor) -> tuple[Value | None, int, str]:
        known = self._value_or_constant(tensor, changes=False)
        value = known if isinstance(known, Value) else None
        return value, len(self._operations), self.module

    def _value_or_constant(self, leaf: Any, changes: bool) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        value = self._values.get(id(leaf)) or self._value_of_written(leaf)
        if value is not None:
            return value
        tensor = self._constants.with_values(leaf)
        return Constant(tuple(leaf.shape), tensor.clone() if changes else tensor)

    def _value_of_written(self, tensor: Tensor) -> Value | None:
        """Return the value of a tensor whose memory was changed through another tensor, or None."""
        written = self._written.get(tensor.untyped_storage()._cdata)
        if written is None:
            return None
        before = Constant(tuple(tensor.shape), self._constants.with_values(tensor))
        return self._add_write(tensor, before, *written)

    def _add_write(
        self, tensor: Tensor, before: Value | Constant, written: Value, region: Tensor
    ) -> Value:
        """Add a `write` operation for `tensor`: `before`, replaced in a `region` by `written`."""
        which = OperationId(self.module, ops.alike("write", tensor, self._images), 0)
        shapes, value = (tuple(tensor.shape),), Value(len(self._operations))
        arguments = (before, written), {"at": _place_within(region, tensor)}
        self._operations.append(Operation(None, "write", which, shapes, *arguments))
        self._set_value(tensor, value)
        return value

    def _add_operation(
        self, function: Any, name: str, result: Any, args: Args, kwargs: Kwargs
    ) -> None:
        tensors = [leaf for leaf in leaves(result) if isinstance(leaf, Tensor)]
        index = len(self._operations)
        which = self.last_id(ops.alike(name, tensors[0], self._images))
        shapes = tuple(tuple(tensor.shape) for tensor in tensors)
        self._operations.append(Operation(function, name, which, shapes, args, kwargs))
        changed = [tensor for tensor in tensors if id(tensor) in self._values]
        if function is not None and ops.is_mutable(function):
            for tensor in tensors:
                self._written[tensor.untyped_storage()._cdata] = Value(index), tensor
        for output, tensor in enumerate(tensors):
            self._set_value(tensor, Value(index, output))
        for written in changed:
            # Tensors that share memory with a changed tensor change too.
            for identity in self._sharing.get(written.untyped_storage()._cdata, []):
                tensor = self._alive[identity]
                if tensor is not written:
                    self._add_write(tensor, self._values[identity], Value(index), written)

    def _set_value(self, tensor: Tensor, value: Value) -> None:
        self._values[id(tensor)] = value
        if id(tensor) not in self._alive:
            self._alive[id(tensor)] = tensor
            storage = tensor.untyped_storage()._cdata
            self._sharing.setdefault(storage, []).append(id(tensor))

    def _enter_module(self, name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        super()._enter_module(name, module, args, kwargs)
        self._begun.setdefault(name, len(self._operations))
        self._note_passage(name, "input", ops.first_tensor((args, kwargs)))

    def _leave_module(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        super()._leave_module(name, module, args, output)
        self._note_passage(name, "output", ops.first_tensor(output))
        self._calls[name] += 1

    def _note_passage(self, module: str, at: At, tensor: Tensor | None) -> None:
        value = None if tensor is None else self._values.get(id(tensor))
        if value is not None:
            self._passages.append(Passage(value, module, at))

    def finish_pass(self, returned: Sequence[Tensor]) -> Dataflow:
        """Return the recorded pass; of several results, keep the one with the most dominators."""
        results = [self._values[id(each)] for each in returned if id(each) in self._values]
        if not results:
            raise VitscopeError(
                "what the network returns does not depend on its images by operations of torch: "
                "compute with torch what it computes with NumPy, or with values detached from them."
            )
        recorded = (
            Dataflow(
                self._images, self._operations, result, self._passages, self._calls, self._begun
            )
            for result in results
        )
        return max(recorded, key=lambda flow: len(flow.dominators()))


def _place_within(region: Tensor, tensor: Tensor) -> tuple[Any, ...] | None:
    """Return the arguments of `as_strided` by which a tensor gives a region; None if it cannot."""
    strides, offset = region.stride(), region.storage_offset() - tensor.storage_offset()
    last = offset + sum((n - 1) * stride for n, stride in zip(region.shape, strides, strict=True))
    within = tensor.is_contiguous() and 0 <= offset <= last < tensor.numel()
    return (tuple(region.shape), strides, offset) if within else None


class _DataflowConstants:
    """In a pass on shapes, computes the values of tensors that depend only on weights."""

    def __init__(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        # Keep tensors without values alive, so that no `id` is used twice.
        self._known = {id(empty): (empty, value) for empty, value in pairs}
        self._device = next((value.device for _, value in pairs), None)
        self._weights = {value.untyped_storage().data_ptr() for _, value in pairs}

    def with_values(self, tensor: Tensor) -> Tensor:
        """Return a tensor with its values; unchanged if it has them or they are unknown."""
        _, value = self._known.get(id(tensor), (None, tensor))
        return value

    def run_with_values(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return an operation's result with values; None if some values are unknown."""
        if self._device is None:
            return None
        changes = ops.is_mutable(function)

        def leaf_with_values(leaf: Any) -> Any:
            if isinstance(leaf, Tensor):
                value = self.with_values(leaf)
                is_weight = value.untyped_storage().data_ptr() in self._weights
                # Copy the weights, which belong to the network, before an operation changes them.
                return value.clone() if changes and is_weight else value
            is_empty = isinstance(leaf, torch.device) and leaf.type == "meta"
            return self._device if is_empty else leaf

        with_values = map_leaves(leaf_with_values, (args, kwargs))
        if any(isinstance(leaf, Tensor) and leaf.is_meta for leaf in leaves(with_values)):
            return None
        return function(*with_values[0], **with_values[1])

    def keep_values(self, result: Any, valued: Any) -> None:
        pairs = zip(leaves(result), leaves(valued), strict=True)
        for empty, value in pairs:
            if isinstance(empty, Tensor) and empty.is_meta:
                self._known[id(empty)] = empty, value


def blank_images(
    model: nn.Module, network: Mapping[str, Any], device: torch.device | str = "cpu"
) -> Tensor:
    shape = (2, len(network["mean"]), *height_and_width(network["image_size"]))
    return torch.zeros(shape, dtype=own_type(model), device=device)


def on_shapes(
    model: nn.Module, network: Mapping[str, Any], make: Callable[[Run, Tensor], Result]
) -> Result:
    """Return `make(run, images)` for two blank images.

    Run on shapes alone if that works, and else with values.
    """
    try:
        with keeping_attributes(model):
            run = running_on(model, without_values(model))
            with KnownShapes():  # type: ignore[no-untyped-call]
                return make(run, blank_images(model, network, "meta"))
    except VitscopeError:
        raise
    except Exception:
        if any(tensor.is_meta for tensor in model.parameters()):
            raise
        # Shapes are not enough if values decide what runs, or if modules hold tensors that are
        # neither parameters nor buffers.
        _refuse_varying_dataflow(model, network)
        with without_onednn():
            return make(model, blank_images(model, network))


@contextmanager
def without_onednn() -> Iterator[None]:
    """Show the steps of an LSTM in the block, as on shapes; oneDNN runs them as one operation."""
    enabled = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = enabled


def _refuse_varying_dataflow(model: nn.Module, network: Mapping[str, Any]) -> None:
    """Refuse a network in which images decide what runs: images would decide the cut points too."""
    blank = blank_images(model, network)
    noise = torch.randn(blank.shape, generator=torch.Generator().manual_seed(0)).to(blank)
    paths = set()
    for images in (blank, noise, noise + 2, noise - 2):
        operations = record_dataflow(model, images).operations
        paths.add(tuple((operation.name, operation.module) for operation in operations))
    if len(paths) > 1:
        raise VitscopeError(
            "the network does other things for other images: one that chooses its path by the "
            "images cannot be read; a part of it that does not, such as its backbone, can."
        )


@torch.no_grad()
def modules_beside_torch(model: nn.Module, images: Tensor) -> list[str]:
    """Return the modules that take numbers which depend on images, but not by operations of torch.

    NumPy and Python compute such numbers: they are constants in a recorded pass, and others in a
    pass of other images.
    """
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(0)).to(images)
    passes = []
    for each in (images, noise):
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            passes.append(record_dataflow(model, each).operations)
    return [
        *dict.fromkeys(
            one.module for one, other in zip(*passes, strict=False) if not _take_equal(one, other)
        )
    ]


def _take_equal(one: Operation, other: Operation) -> bool:
    """Tell whether an operation takes the same constants and numbers in two passes."""
    taken = (leaves((each.args, each.kwargs)) for each in (one, other))
    return all(
        same_bytes(a.tensor, b.tensor)
        if isinstance(a, Constant) and isinstance(b, Constant)
        # A function of FlexAttention is made anew in each pass.
        else a == b or a != a or callable(a)
        for a, b in zip(*taken, strict=False)
    )


@contextmanager
def keeping_attributes(model: nn.Module) -> Iterator[None]:
    """Restore modules' attributes after the block: a pass on shapes may put meta tensors there."""
    of_torch = vars(nn.Module()).keys()
    modules = [vars(module) for module in model.modules()]
    kept = [(each, {name: each[name] for name in each.keys() - of_torch}) for each in modules]
    contents = [
        (value, copy(value))
        for _, before in kept
        for value in before.values()
        if isinstance(value, dict | list)
    ]
    try:
        yield
    finally:
        for attributes, before in kept:
            for name in attributes.keys() - of_torch:
                del attributes[name]
            attributes.update(before)
        for value, content in contents:
            value.clear()
            value.update(content) if isinstance(value, dict) else value.extend(content)


def running_on(model: nn.Module, tensors: Mapping[str, Tensor]) -> Run:
    """Return a function that runs a network with `tensors`, named as in `own_tensors`."""
    return partial(functional_call, model, dict(tensors), tie_weights=False)


def without_values(model: nn.Module) -> dict[str, Tensor]:
    """Return a network's tensors on the meta device; tensors that modules share stay shared."""
    empty: dict[int, Tensor] = {}
    return {
        name: empty.setdefault(id(tensor), tensor.detach().to("meta"))
        for name, tensor in own_tensors(model).items()
    }


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of all modules, but those of a shared module only once."""
    # Once, since `functional_call` does not restore a tensor that it replaced twice.
    return {
        f"{prefix}.{name}".lstrip("."): tensor
        for prefix, module in model.named_modules()
        for name, tensor in (
            *module.named_parameters(recurse=False, remove_duplicate=False),
            *module.named_buffers(recurse=False, remove_duplicate=False),
        )
    }


def record_with_values(model: nn.Module, network: Mapping[str, Any]) -> Dataflow:
    """Record a model on shapes, but with the values of tensors that depend only on weights."""
    model = model.eval()
    try:
        empty = without_values(model)
        pairs = [(empty[name], tensor.detach()) for name, tensor in own_tensors(model).items()]
        images = blank_images(model, network, "meta")
        with KnownShapes():  # type: ignore[no-untyped-call]
            return record_dataflow(model, images, running_on(model, empty), pairs)
    except VitscopeError:
        raise
    except Exception:
        # Shapes are not enough, for the same reasons as in `on_shapes`.
        first = next(chain(model.parameters(), model.buffers()), torch.zeros(0))
        with sdpa_kernel(SDPBackend.MATH):
            return record_dataflow(model, blank_images(model, network, first.device))


def name_of_constant(model: nn.Module, constant: Constant) -> str | None:
    memory = constant.tensor.untyped_storage().data_ptr()
    named = chain(model.named_parameters(), model.named_buffers())
    return next((name for name, each in named if each.untyped_storage().data_ptr() == memory), None)
