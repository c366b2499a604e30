"""A part of a network between two values, run alone: what was recorded of it, on other values."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value, record
from vitscope.networks.finding.operations import is_mutable


class Replay:
    """The parts of a network that its cut points cut it into, in passes of any number of images.

    Operations are recorded with the number of images in their arguments, so that each number takes
    a pass of its own, in which one image stands for all.
    """

    def __init__(self, model: nn.Module, points: Sequence[CutPoint], images: Tensor) -> None:
        self._model = model
        self._points = points
        self._image = images[:1]
        self._flows = {len(images): record(model, images)}

    def run(self, part: int, tensor: Tensor) -> Tensor:
        """Run a part, the first of which takes images, and return what it ends with."""
        flow, start, end = self._find(part, tensor)
        order = _needed(flow, start, end)
        operations = [flow.operations[index] for index in order]
        changed = any(each.function and is_mutable(each.function) for each in operations)
        values = {start: tensor.clone() if changed else tensor}
        for index, operation in zip(order, operations, strict=True):
            result = _run(operation, values)
            tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
            values |= {Value(index, output): each for output, each in enumerate(tensors)}
        return values[end]

    def _find(self, part: int, tensor: Tensor) -> tuple[Dataflow, Value, Value]:
        """Return a pass of as many images as a tensor has, and where the part lies in it."""
        known, flow = next(iter(self._flows.items()))
        shape = flow.shape_of(self._cuts(flow)[part])
        images = tensor.numel() * known // torch.Size(shape).numel()
        if images not in self._flows and images:
            blank = self._image.expand(images, *self._image.shape[1:])
            self._flows[images] = record(self._model, blank)
        flow = self._flows.get(images, flow)
        start, end = self._cuts(flow)[part : part + 2]
        if tensor.shape != flow.shape_of(start):
            raise VitscopeError(
                f"found a tensor of the shape {_shape(tensor.shape)}, allowed: "
                f"{_shape(shape)} for {known} images, or as many as there are."
            )
        return flow, start, end

    def _cuts(self, flow: Dataflow) -> list[Value]:
        """Return the images, the values at the cut points, and the result."""
        return [Value(0), *(_value_at(flow, point) for point in self._points), flow.result]


def _value_at(flow: Dataflow, point: CutPoint) -> Value:
    if point.operation is not None:
        found = enumerate(flow.operations)
        return next(Value(index) for index, each in found if each.which == point.operation)
    place = point.module or "", point.at
    return next(each.value for each in flow.passages if (each.module, each.at) == place)


def _needed(flow: Dataflow, start: Value, end: Value) -> list[int]:
    """Return the operations from one value to another, in order."""
    needed: set[int] = set()
    pending = [end]
    while pending:
        value = pending.pop()
        if value == start or value.operation in needed:
            continue
        if value.operation <= start.operation:
            raise VitscopeError(
                "It takes more of what was computed before than the stream: it cannot run alone."
            )
        needed.add(value.operation)
        pending += flow.operations[value.operation].operands()
    return sorted(needed)


def _run(operation: Operation, values: dict[Value, Tensor]) -> Any:
    # A view of what was written to has changed with it.
    if operation.function is None:
        if isinstance(operation.args[0], Constant):
            raise VitscopeError(
                f"{quoted(operation.module)} writes into a tensor that it makes: it cannot run "
                f"alone."
            )
        return values[operation.operands()[0]]
    changes = is_mutable(operation.function)

    def known(leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return values[leaf]
        if isinstance(leaf, Constant):
            return leaf.tensor.clone() if changes else leaf.tensor
        return leaf

    args, kwargs = tree_map(known, (operation.args, dict(operation.kwargs)))
    return operation.function(*args, **kwargs)


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))
