"""Run the part between two cut points alone, by replaying the operations of a recorded pass."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.files.arrays import format_shape
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.finding.dataflow_recorder import record_dataflow
from vitscope.networks.finding.leaves import leaves, map_leaves


class Replay:
    """Runs the parts between a network's cut points, for any number of images.

    Recorded operations hold the number of images in their arguments, so each number of images
    needs a recorded pass of its own, made with copies of one image.
    """

    def __init__(self, model: nn.Module, points: Sequence[CutPoint], images: Tensor) -> None:
        self._model = model
        self._points = points
        self._image = images[:1]
        self._flows = {len(images): record_dataflow(model, images)}

    def run(self, part: int, tensor: Tensor) -> Tensor:
        """Run a part and return its result; the first part takes images."""
        flow, start, end = self._find_pass(part, tensor)
        order = _operations_to_replay(flow, start, end)
        operations = [flow.operations[index] for index in order]
        changed = any(each.function and ops.is_mutable(each.function) for each in operations)
        values = {start: tensor.clone() if changed else tensor}
        for index, operation in zip(order, operations, strict=True):
            result = _replay_operation(operation, values)
            tensors = [leaf for leaf in leaves(result) if isinstance(leaf, Tensor)]
            values |= {Value(index, output): each for output, each in enumerate(tensors)}
        return values[end]

    def _find_pass(self, part: int, tensor: Tensor) -> tuple[Dataflow, Value, Value]:
        """Return a pass with as many images as `tensor`, and the part's start and end in it."""
        known, flow = next(iter(self._flows.items()))
        shape = flow.shape_of(self._ends_of_parts(flow)[part])
        images = tensor.numel() * known // torch.Size(shape).numel()
        if images not in self._flows and images:
            blank = self._image.expand(images, *self._image.shape[1:])
            self._flows[images] = record_dataflow(self._model, blank)
        flow = self._flows.get(images, flow)
        start, end = self._ends_of_parts(flow)[part : part + 2]
        if tensor.shape != flow.shape_of(start):
            raise VitscopeError(
                f"found a tensor of the shape {format_shape(tensor.shape)}, allowed: "
                f"{format_shape(shape)} for {known} images, or as many as there are."
            )
        return flow, start, end

    def _ends_of_parts(self, flow: Dataflow) -> list[Value]:
        return [Value(0), *map(flow.value_of, self._points), flow.result]


def _operations_to_replay(flow: Dataflow, start: Value, end: Value) -> list[int]:
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
        pending += flow.operations[value.operation].operands
    return sorted(needed)


def _replay_operation(operation: Operation, values: dict[Value, Tensor]) -> Any:
    if operation.function is None:
        # The tensor is a view of memory that was written to, so it has changed already.
        if isinstance(operation.args[0], Constant):
            raise VitscopeError(
                f"{quoted(operation.module)} writes into a tensor that it makes: it cannot run "
                f"alone."
            )
        return values[operation.operands[0]]
    changes = ops.is_mutable(operation.function)

    def replayed_tensor(leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return values[leaf]
        if isinstance(leaf, Constant):
            return leaf.tensor.clone() if changes else leaf.tensor
        return leaf

    args, kwargs = map_leaves(replayed_tensor, (operation.args, operation.kwargs))
    return operation.function(*args, **kwargs)
