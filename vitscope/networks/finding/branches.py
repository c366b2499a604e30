"""What the operations between two values of a network do: the kind of a branch, and its name."""

import re
from collections.abc import Sequence

from vitscope.networks.finding.cut_points import Kind
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value
from vitscope.networks.finding.operations import (
    CONVOLUTIONS,
    POOLINGS,
    PRODUCTS,
    is_fused_attention,
    multiplies,
)


def pattern(module: str) -> str:
    """Return the name of a module with its numbers left out."""
    return re.sub(r"\d+", "*", module)


class Branches:
    """Tells what operations of a recorded pass do together."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow

    def kind(self, branch: Sequence[Operation], channels: int) -> Kind:
        """Return the kind of a branch of a stream that has so many channels."""
        if any(self.attends(operation) for operation in branch):
            return "msa"
        spatial = [operation for operation in branch if self._is_spatial(operation)]
        if spatial and not self._belong_to_mlp(spatial, branch, channels):
            return "conv"
        if any(op.name in PRODUCTS | CONVOLUTIONS for op in branch):
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
        factors = [arg for arg in operation.args if isinstance(arg, Value)]
        return operation.name in PRODUCTS and len(factors) > 1

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
