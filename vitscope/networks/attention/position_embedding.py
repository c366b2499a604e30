"""The position embedding of a network: what it adds to its tokens that differs between positions.

It is found in what the network computes: the first addition to the stream, outside of its branches,
of something that has values of its own at each position and is the same for all images.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from vitscope.errors import VitscopeError
from vitscope.networks.attention.with_values import name_of, record_with_values
from vitscope.networks.finding.cut_points import Layout
from vitscope.networks.finding.dataflow import Constant, Operation, Value
from vitscope.networks.finding.operations import ADDITIONS
from vitscope.networks.finding.recorded_pass import RecordedPass


@dataclass(frozen=True)
class PositionEmbedding:
    """A position embedding as a map, (channels, rows, columns), and what it is called.

    Where it is no parameter itself but made of some, it has the name of the module that adds it.
    """

    name: str
    values: Tensor


def position_embedding(model: nn.Module, network: Mapping[str, Any]) -> PositionEmbedding:
    """Return the position embedding of a model with weights, which a study describes."""
    recorded = RecordedPass(model, record_with_values(model, network))
    for index in recorded.dominators:
        operation = recorded.operations[index]
        constant = _find_constant(operation)
        layout = recorded.maps.layout(index) if constant else None
        if constant and layout and _differs(constant, operation, layout):
            added = constant.tensor.expand(operation.shape)
            name = name_of(model, constant) or operation.module or type(model).__name__
            return PositionEmbedding(name, layout.to_nchw(added)[0])
    raise VitscopeError(
        "the network has no position embedding: it adds nothing to its tokens that differs between "
        "positions and is the same for all images."
    )


def _find_constant(operation: Operation) -> Constant | None:
    """Return the constant that an operation adds to a value, if it does."""
    constants = [arg for arg in operation.args if isinstance(arg, Constant)]
    values = [arg for arg in operation.args if isinstance(arg, Value)]
    adds = operation.name in ADDITIONS and len(constants) == len(values) == 1
    return constants[0] if adds and not constants[0].tensor.is_meta else None


def _differs(constant: Constant, operation: Operation, layout: Layout) -> bool:
    """Tell whether a constant is as large as a map along a dimension of positions."""
    ahead = len(operation.shape) - len(constant.shape)
    spatial = (at - ahead for at, letter in enumerate(layout.order) if letter in "hwl")
    return any(at >= 0 and constant.shape[at] > 1 for at in spatial)
