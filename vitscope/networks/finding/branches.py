"""What the operations between two values of a network do: the kind of a branch, and its name."""

import re
from collections.abc import Mapping, Sequence
from math import log2

from vitscope.networks.finding.cut_points import Kind
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value
from vitscope.networks.finding.operations import (
    CONVOLUTIONS,
    CUMULATIONS,
    MOVES,
    POOLINGS,
    PRODUCTS,
    SOFTMAXES,
    is_fourier,
    is_fused_attention,
    multiplies,
)


def pattern(module: str) -> str:
    """Return the name of a module with its numbers left out."""
    return re.sub(r"\d+", "*", module)


def factors_of(operation: Operation) -> list[Value]:
    """Return the values that a product multiplies; what it adds comes before them."""
    first = 1 if operation.name in ("addmm", "baddbmm") else 0
    return [arg for arg in operation.args[first : first + 2] if isinstance(arg, Value)]


class Branches:
    """Tells what operations of a recorded pass do together."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow

    def kind(self, indices: Sequence[int], channels: int, size: tuple[int, int]) -> Kind:
        """Return the kind of a branch of a stream of so many channels, and maps of a size."""
        branch = [self._flow.operations[index] for index in indices]
        softmax = any(op.name in SOFTMAXES or is_fused_attention(op.name) for op in branch)
        if not softmax and self._recurs(indices, size):
            return "ssm"
        if any(self.attends(operation) for operation in branch):
            return "msa"
        spatial = [operation for operation in branch if self._is_spatial(operation)]
        if spatial and not self._belong_to_mlp(spatial, branch, channels):
            return "conv"
        if any(op.name in PRODUCTS | CONVOLUTIONS or is_fourier(op.name) for op in branch):
            return "mlp"
        return "pool" if any(op.name in POOLINGS for op in branch) else "mlp"

    def main(self, branch: Sequence[Operation]) -> Operation | None:
        """Return the operation that decides a branch's kind: attention, or its first matrix."""
        doing = [operation for operation in branch if multiplies(operation.name)]
        return max(doing, key=self.attends, default=None)

    def attends(self, operation: Operation) -> bool:
        """Tell whether an operation multiplies values that both depend on the images."""
        if is_fused_attention(operation.name):
            return True
        return operation.name in PRODUCTS and len(factors_of(operation)) > 1

    def _recurs(self, indices: Sequence[int], size: tuple[int, int]) -> bool:
        """Tell whether operations pass a state on over positions.

        They accumulate, or add to a multiple of what they computed before, as often as it takes to
        come from one end of a row to the other, or by doubling from one end of the map.
        """
        if any(self._flow.operations[index].name in CUMULATIONS for index in indices):
            return True
        least = max(3, min(int(log2(max(size[0] * size[1], 1))), min(size) - 1))
        steps: dict[int, int] = {}
        for index in indices:
            operation = self._flow.operations[index]
            carried = [self._carried(v.operation, steps) for v in operation.operands()]
            if operation.name in ("add", "sub"):
                steps[index] = 1 + max(carried, default=0)
            elif operation.name in ("addcmul", "lerp"):
                known = (steps.get(v.operation, 0) for v in operation.operands())
                steps[index] = 1 + max(known, default=0)
            elif operation.name in MOVES and len(carried) == 1:
                steps[index] = steps.get(operation.operands()[0].operation, 0)
            if steps.get(index, 0) >= least:
                return True
        return False

    def _carried(self, index: int, steps: Mapping[int, int]) -> int:
        """Return how many steps led to a state that an operation multiplies."""
        operation = self._flow.operations[index]
        if operation.name in MOVES and len(operation.operands()) == 1:
            return self._carried(operation.operands()[0].operation, steps)
        if operation.name != "mul":
            return 0
        return max((steps.get(v.operation, 0) for v in operation.operands()), default=0)

    def _kernel(self, operation: Operation) -> tuple[int, ...]:
        weight = operation.args[1]
        shape: tuple[int, ...] = (
            self._flow.shape_of(weight) if isinstance(weight, Value) else weight.shape
        )
        return shape

    def _is_spatial(self, operation: Operation) -> bool:
        return operation.name in CONVOLUTIONS and max(self._kernel(operation)[2:]) > 1

    def _belong_to_mlp(
        self, spatial: Sequence[Operation], branch: Sequence[Operation], channels: int
    ) -> bool:
        """Tell whether convolutions lie within an MLP: of one channel each, where it is wide."""
        for operation in spatial:
            wide, of_group = self._kernel(operation)[:2]
            widened = any(op.name in PRODUCTS and op.shape[-1] == wide for op in branch)
            if of_group > 1 or wide <= channels or not widened:
                return False
        return True
