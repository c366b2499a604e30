"""Change what a network computes, at a branch, a cut point or a head, in each of its passes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.attention.reading import (
    Attention,
    differences_of_read_attention,
    merge_places,
    values_and_outputs,
)
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.cut_points import CutPoint, Layout, OperationId
from vitscope.networks.finding.dataflow_recorder import is_recording
from vitscope.networks.finding.operations import Args, Kwargs
from vitscope.networks.running.joins import BranchChanger

Of = Literal["branch", "stream", "heads"]
# Returns other values of the same shape; gets the images of the batch, too.
Change = Callable[[Tensor, Tensor], Tensor]
# The largest error of a head's output as it is read, as a share of the largest output.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Target:
    """What is changed: the branch that joins at a cut point, the stream there, or some heads.

    Values of branches and streams are (images, tokens, channels); positions of a map are its tokens
    row by row. Values of heads are (images, windows, heads, queries, channels), before they are
    projected. `tokens` and `channels` are indices; None for all.
    """

    point: CutPoint
    of: Of
    attention: Attention | None = None
    heads: tuple[int, ...] = ()
    tokens: tuple[int, ...] | None = None
    channels: tuple[int, ...] | None = None

    @property
    def layout(self) -> Layout | None:
        join = self.point.join
        return join.layout if self.of == "branch" and join else self.point.layout


@dataclass(frozen=True)
class Intervention:
    """A target, and how it is changed: one change, or one for each operand of the branch."""

    target: Target
    changes: tuple[Change, ...]


def zero_values(values: Tensor, images: Tensor) -> Tensor:
    return torch.zeros_like(values)


def scale_values(factor: float, values: Tensor, images: Tensor) -> Tensor:
    return values * factor


def replace_by_mean(mean: Tensor, values: Tensor, images: Tensor) -> Tensor:
    return mean.to(values).expand_as(values)


def replace_by_others(
    pool: Tensor, digests: Sequence[int], values: Tensor, images: Tensor
) -> Tensor:
    """Replace the values of each image by those of another, whatever batch the image is in.

    The bytes of an image say which of the pool it gets: never itself.
    """
    chosen = []
    for digest in digest_images(images):
        others = [index for index, other in enumerate(digests) if other != digest]
        chosen.append(others[digest % len(others)])
    return pool[chosen].to(values)


# These change each value alone, wherever it lies.
_BY_VALUE = (zero_values, scale_values)


def call_own_change(function: Callable[[Tensor], Any], values: Tensor, images: Tensor) -> Tensor:
    found = function(values.clone())
    if not isinstance(found, Tensor) or found.shape != values.shape:
        what = f"{tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise VitscopeError(
            f"how: the function returned {what} for values of the shape {tuple(values.shape)}, "
            f"allowed: a tensor of the same shape."
        )
    return found


def digest_images(images: Tensor) -> list[int]:
    return [crc32(each.contiguous().numpy().tobytes()) for each in images.detach().cpu().float()]


def token_indices(layout: Layout, map_size: tuple[int, int], count: int, where: Any) -> list[int]:
    """Return the indices of tokens: "class", "registers", "positions", or (row, column) pairs."""
    rows, columns = layout.grid or map_size
    placed = range(layout.prefix, layout.prefix + rows * columns)
    positions = [*(placed if layout.tokens is None else layout.tokens)]
    others = [index for index in range(count) if index not in positions]
    named = {"class": others[:1], "registers": others[1:], "positions": positions}
    if isinstance(where, str):
        if not named.get(where):
            there = [quoted(name) for name, tokens in named.items() if tokens]
            raise VitscopeError(
                f"tokens: found {quoted(where)}, allowed for this network: {', '.join(there)}, or "
                f"pairs of row and column."
            )
        return named[where]
    for pair in where:
        if not (len(pair) == 2 and 0 <= pair[0] < rows and 0 <= pair[1] < columns):
            raise VitscopeError(
                f"tokens: found {pair}, allowed: pairs of a row from 0 to {rows - 1} and a column "
                f"from 0 to {columns - 1}."
            )
    return [positions[row * columns + column] for row, column in where]


def indices_by_image(layout: Layout, shape: Sequence[int]) -> Tensor:
    """Return where each value lies in a tensor of this shape: (images, tokens, channels)."""
    numbers = torch.arange(torch.Size(shape).numel()).view(*shape)
    if layout.order in ("nchw", "nhwc"):
        return layout.to_nchw(numbers).flatten(2).transpose(1, 2)
    return layout.all_tokens(numbers)


def _change_tensor(tensor: Tensor, target: Target, change: Change, images: Tensor) -> Tensor:
    """Return a tensor in which the target's tokens and channels are changed."""
    chosen = target.tokens, target.channels
    if chosen == (None, None) and getattr(change, "func", change) in _BY_VALUE:
        return change(tensor, images)
    layout, shape = target.layout, [*tensor.shape]
    if layout is not None and len(shape) > len(layout.order):
        shape = [size for size in shape if size > 1]
    if layout is None or len(shape) != len(layout.order):
        raise VitscopeError(
            f"nothing says which values of the branch at {quoted(target.point.name)} are of which "
            f"image and token: take how='zero' or 'scale' of the whole branch."
        )
    where = indices_by_image(layout, shape)
    if len(where) != len(images):
        raise ops.another_path(f"had {len(where)} of {len(images)} images at the intervention")
    for dimension, indices in enumerate(chosen, 1):
        if indices is not None:
            where = where.index_select(dimension, torch.tensor(indices))
    return _change_at(tensor, where, change, images)


def _change_heads(output: Tensor, target: Target, change: Change, images: Tensor) -> Tensor:
    assert target.attention is not None
    places = target.attention.places(len(images), 0, len(images), slice(None))
    places = places[:, :, list(target.heads)]
    of_place = torch.arange(output[..., 0, 0].numel() * output.shape[-1] * output.shape[-2])
    where = of_place.view(-1, *output.shape[-2:])[torch.from_numpy(places)]
    return _change_at(output, where, change, images)


def _change_at(tensor: Tensor, where: Tensor, change: Change, images: Tensor) -> Tensor:
    flat = tensor.detach().clone(memory_format=torch.contiguous_format).view(-1)
    at = where.to(flat.device)
    flat[at] = change(flat[at], images)
    return flat.view(tensor.shape)


class _StreamChanger(ops.ModuleMode):  # type: ignore[no-untyped-call]
    """Changes the result of the operation where a cut point is read."""

    def __init__(self, model: nn.Module, wanted: OperationId, passing: "_Pass") -> None:
        super().__init__(model)
        self._wanted, self._passing = wanted, passing

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        result = function(*args, **kwargs)
        name = ops.operation_name(function)
        is_alike = name == self._wanted.alike[0] and not ops.is_bias(name, args)
        # What measures compute between passes is none of the network's.
        if self._passing.images is None or not is_alike:
            return result
        tensor = ops.first_tensor(result)
        if tensor is None or self.count(name, tensor) != self._wanted:
            return result
        changed = self._passing.change(tensor)
        if ops.is_mutable(function):
            with _disable_current_modes():
                tensor.copy_(changed)
            return result
        return _with_first_tensor(result, changed)


class _HeadChanger(ops.ModuleMode):  # type: ignore[no-untyped-call]
    """Changes what heads make of the values, before it is projected."""

    def __init__(self, model: nn.Module, wanted: OperationId, passing: "_Pass") -> None:
        super().__init__(model)
        self._wanted, self._passing = wanted, passing
        self._weights: Tensor | None = None

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        result = function(*args, **kwargs)
        if self._passing.as_it_is:
            return result
        name, tensor = ops.operation_name(function), ops.first_tensor(result)
        if tensor is not None and ops.weighs(name):
            if self.count(name, tensor) == self._wanted:
                if ops.is_fused_attention(name):
                    return _with_first_tensor(result, self._passing.change(tensor))
                self._weights = tensor
        elif self._weights is not None and name in ops.PRODUCTS:
            with _disable_current_modes():
                weights = merge_places(self._weights)
                left, right = args[-2:]
                found = values_and_outputs(left, right, result, weights.shape)
                if not found:
                    return result
                # Of two square factors, one is the weights.
                errors = [
                    (weights @ merge_places(v) - merge_places(o)).abs().max() for v, o in found
                ]
                _, output = found[int(torch.stack(errors).argmin())]
            self._weights = None
            changed = self._passing.change(output)
            return changed if output is result else changed.mT
        return result


def _with_first_tensor(result: Any, changed: Tensor) -> Any:
    leaves, spec = tree_flatten(result)
    at = next(index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor))
    leaves[at] = changed
    return tree_unflatten(leaves, spec)


class _Pass:
    """The pass that runs: its images, and how many operands of the target were changed in it."""

    def __init__(self, intervention: Intervention) -> None:
        self._target, self._changes = intervention.target, intervention.changes
        self.images: Tensor | None = None
        self._count, self.as_it_is = 0, False

    def begin(self, _: nn.Module, args: Any, kwargs: Any) -> None:
        # Cut points and attention are found in the network as it is.
        self.as_it_is = is_recording()
        self.images, self._count = ops.first_tensor((args, kwargs)), 0

    def end(self, _: nn.Module, args: Any, output: Any) -> None:
        self.images = None
        # Torch gives no output if the pass failed.
        if output is not None and self._count == 0 and not self.as_it_is:
            raise ops.another_path(f"never came to the intervention at {self._target.point.name}")

    def change(self, tensor: Tensor) -> Tensor:
        assert self.images is not None
        if self.as_it_is:
            return tensor
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise VitscopeError("No gradient passes through an intervention: none can be measured.")
        change = self._changes[min(self._count, len(self._changes) - 1)]
        self._count += 1
        work = _change_heads if self._target.of == "heads" else _change_tensor
        with _disable_current_modes():
            return work(tensor, self._target, change, self.images)


@contextmanager
def intervening(model: nn.Module, interventions: Iterable[Intervention]) -> Iterator[None]:
    """Change what a network computes in each pass in the block.

    What reads branches and heads reads what the network adds and multiplies after the change; what
    reads cut points reads the stream after the change.
    """
    with without_fast_path(), ExitStack() as stack:
        for each in interventions:
            passing = _Pass(each)
            begin = model.register_forward_pre_hook(passing.begin, with_kwargs=True)
            stack.callback(begin.remove)
            stack.enter_context(_changing(model, each.target, passing))
            stack.callback(model.register_forward_hook(passing.end, always_call=True).remove)
        yield


def _changing(model: nn.Module, target: Target, passing: _Pass) -> AbstractContextManager[Any]:
    point = target.point
    if target.of == "heads":
        assert target.attention is not None
        return _in_passes(_HeadChanger(model, target.attention.operation, passing))
    if target.of == "branch":
        assert point.join is not None
        names = point.join.names
        return _in_passes(BranchChanger(model, names, point.join, change=passing.change))
    if point.operation is not None:
        return _StreamChanger(model, point.operation, passing)
    return _hooking_stream(model, point, passing.change)


@contextmanager
def _hooking_stream(
    model: nn.Module, point: CutPoint, change: Callable[[Tensor], Tensor]
) -> Iterator[None]:
    module = model.get_submodule(point.module or "")

    def change_input(_: nn.Module, args: Any, kwargs: Any) -> Any:
        found = ops.first_tensor((args, kwargs))
        return None if found is None else _with_first_tensor((args, kwargs), change(found))

    def change_output(_: nn.Module, args: Any, output: Any) -> Any:
        found = ops.first_tensor(output)
        return None if found is None else _with_first_tensor(output, change(found))

    if point.at == "input":
        hook = module.register_forward_pre_hook(change_input, with_kwargs=True)
    else:
        hook = module.register_forward_hook(change_output)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def _in_passes(mode: ops.ModuleMode) -> Iterator[None]:
    """Enter a mode in each pass, before all that read the pass: these read what it changes."""
    enter, leave = (partial(each, mode) for each in (TorchDispatchMode.__enter__, _leave))
    running: list[bool] = []

    def begin(*_: Any) -> None:
        enter()
        running.append(True)

    def end(*_: Any) -> None:
        if running:
            running.pop()
            leave()

    with mode:
        leave()
        first = mode.model.register_forward_pre_hook(begin)
        last = mode.model.register_forward_hook(end, prepend=True, always_call=True)
        try:
            yield
        finally:
            first.remove()
            last.remove()
            enter()


def _leave(mode: TorchDispatchMode) -> None:
    TorchDispatchMode.__exit__(mode, None, None, None)  # type: ignore[no-untyped-call]


@torch.inference_mode()
def read_target(
    model: nn.Module, target: Target, batches: Iterable[Tensor], before: Iterable[Intervention]
) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """Yield the images of each batch with the target's values, a tensor for each operand."""
    seen: list[tuple[Tensor, Tensor]] = []

    def see(values: Tensor, images: Tensor) -> Tensor:
        seen.append((images, values))
        return values

    with intervening(model, [*before, Intervention(target, (see,))]):
        for batch in batches:
            seen.clear()
            model(batch)
            yield seen[0][0], [values for _, values in seen]


def refuse_unread_heads(model: nn.Module, attention: Attention, images: Tensor) -> None:
    """Refuse heads of which nobody can prove that their output is what is changed."""
    found: Mapping[str, float] = {}
    if not (attention.packed or attention.mixed):
        found = differences_of_read_attention(model, [attention], images)
    if not found.get(attention.name, 1.0) <= TOLERANCE:
        raise VitscopeError(
            f"heads: the attention of {quoted(attention.name)} is not its weights times its values "
            f"by head, so that no head can be changed alone: take of='branch'."
        )
