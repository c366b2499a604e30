"""Tell the kinds of branches: whether they attend, convolve or are an MLP."""

import re
from collections.abc import Container, Mapping, Sequence
from math import log2

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.cut_points import Kind
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value


def pattern_of_module(module: str) -> str:
    return re.sub(r"\d+", "*", module)


def factors_of(operation: Operation) -> list[Value]:
    """Return the values that a product multiplies, without the value that `addmm` adds to it."""
    first = 1 if operation.name in ("addmm", "baddbmm") else 0
    return [arg for arg in operation.args[first : first + 2] if isinstance(arg, Value)]


def multiplies_values(operation: Operation) -> bool:
    return operation.name in ops.PRODUCTS and len(factors_of(operation)) == 2


def attends(operation: Operation) -> bool:
    return ops.is_fused_attention(operation.name) or multiplies_values(operation)


def find_main_operation(branch: Sequence[Operation]) -> Operation | None:
    """Return the operation that decides a branch's kind: attention, or else the first product."""
    doing = [operation for operation in branch if ops.multiplies(operation.name)]
    return max(doing, key=attends, default=None)


def kind_without_attention(
    flow: Dataflow, indices: Sequence[int], channels: int, size: tuple[int, int]
) -> Kind:
    """Return the kind of a branch that does not attend.

    `channels` and `size` describe the stream's feature map.
    """
    branch = [flow.operations[index] for index in indices]
    spatial = [i for i in indices if is_spatial_convolution(flow, flow.operations[i])]
    if spatial and not _belong_to_mlp_branch(flow, spatial, {*indices}, channels):
        return "conv"
    if any(op.name in ops.PRODUCTS | ops.CONVOLUTIONS or ops.is_fourier(op.name) for op in branch):
        return "mlp"
    return "pool" if any(op.name in ops.POOLINGS for op in branch) else "mlp"


def passes_state(flow: Dataflow, indices: Sequence[int], size: tuple[int, int]) -> bool:
    """Tell whether operations pass a state along positions, as state-space models do.

    They do if one of them accumulates, as `cumsum` does, or if a chain of additions, each to a
    multiple of the sum before it, is long enough: it must have enough steps to cross the map's
    shorter side one by one, or to cross the whole map with steps that double.
    """
    if any(flow.operations[index].name in ops.CUMULATIONS for index in indices):
        return True
    least = max(3, min(int(log2(max(size[0] * size[1], 1))), min(size) - 1))
    steps: dict[int, int] = {}
    for index in indices:
        operation = flow.operations[index]
        carried = [_branch_steps_to_state(flow, v.operation, steps) for v in operation.operands]
        known = [steps.get(v.operation, 0) for v in operation.operands]
        if operation.name == "add":
            steps[index] = 1 + max(carried, default=0)
        elif operation.name == "sub":
            # As in a GRU, whose state becomes a multiple of its difference from a new value.
            steps[index] = max(1 + max(carried, default=0), *known)
        elif operation.name in ("addcmul", "lerp"):
            steps[index] = 1 + max(known, default=0)
        elif operation.name in ops.MOVES and len(carried) == 1:
            steps[index] = known[0]
        if steps.get(index, 0) >= least:
            return True
    return False


def _branch_steps_to_state(flow: Dataflow, index: int, steps: Mapping[int, int]) -> int:
    """Return the number of steps that led to the state which an operation multiplies.

    The operation may also move such a product. Return 0 for all other operations.
    """
    operation = flow.operations[index]
    if operation.name in ops.MOVES and len(operation.operands) == 1:
        return _branch_steps_to_state(flow, operation.operands[0].operation, steps)
    if operation.name != "mul":
        return 0
    return max((steps.get(v.operation, 0) for v in operation.operands), default=0)


def _kernel_shape(flow: Dataflow, operation: Operation) -> tuple[int, ...]:
    weight = operation.args[1]
    return flow.shape_of(weight) if isinstance(weight, Value) else weight.shape


def is_spatial_convolution(flow: Dataflow, operation: Operation) -> bool:
    return operation.name in ops.CONVOLUTIONS and max(_kernel_shape(flow, operation)[2:]) > 1


def _belong_to_mlp_branch(
    flow: Dataflow, spatial: Sequence[int], branch: Container[int], channels: int
) -> bool:
    """Tell whether convolutions are part of an MLP: depthwise, and as wide as its inner layer.

    A linear layer before them makes it as wide, or several times as wide, with gates beside it.
    One that computes a gate behind them, as of squeeze and excitation, does not.
    """
    for index in spatial:
        wide, of_group = _kernel_shape(flow, flow.operations[index])[:2]
        if of_group > 1 or wide <= channels:
            return False
        for before in _layers_before(flow, index):
            layer = flow.operations[before]
            widens = layer.name in ops.PRODUCTS and layer.shape[-1] % wide == 0
            if before not in branch or not (widens or before in spatial):
                return False
    return True


def _layers_before(flow: Dataflow, index: int) -> set[int]:
    """Return the nearest products and convolutions, or the images, that an operation takes."""
    found, seen, waiting = set[int](), set[int](), [index]
    while waiting:
        for value in flow.operations[waiting.pop()].operands:
            before = value.operation
            if before == 0 or flow.operations[before].name in ops.PRODUCTS | ops.CONVOLUTIONS:
                found.add(before)
            elif before not in seen:
                seen.add(before)
                waiting.append(before)
    return found
