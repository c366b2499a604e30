"""Relative position biases: what a network adds to products of queries and keys, by their offset.

They are found in what the network computes, and told from masks by their values: they depend on the
offset between two positions, and on nothing else of these.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from vitscope.errors import VitscopeError
from vitscope.networks.attention.with_values import record_with_values
from vitscope.networks.finding.branches import Branches
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.finding.operations import ADDITIONS

Array = npt.NDArray[Any]

# The most class tokens and registers that stand before the tokens of positions.
MOST_PREFIX = 8
# Biases of one offset are equal if they differ by less than this share of the largest.
EQUAL = 1e-5


@dataclass(frozen=True)
class PositionBias:
    """The biases of a layer by offset, (heads, 2 rows - 1, 2 columns - 1), and its module.

    In the middle is the bias of a position to itself; to the right, of a query to keys on its
    right. Where all heads of a layer have one bias, it is `shared`, and there once.
    """

    module: str
    values: Array
    shared: bool


def position_biases(model: nn.Module, network: Mapping[str, Any]) -> list[PositionBias]:
    """Return the biases of all layers of a model with weights, which a study describes."""
    flow = record_with_values(model, network)
    branches = Branches(flow)
    found = []
    for operation, constant, value in _find_additions(flow):
        if _attends(flow, branches, value):
            shape = flow.shape_of(value)
            table = _of_windows(constant.tensor, shape, flow)
            if table is not None:
                shared = len(table) == 1 < _heads(shape, flow.images)
                found.append(PositionBias(operation.module, table, shared))
    if not found:
        raise VitscopeError(
            "the network has no relative position bias: it adds nothing to the products of queries "
            "and keys that depends on the offset between two positions alone."
        )
    return found


def _find_additions(flow: Dataflow) -> Iterator[tuple[Operation, Constant, Value]]:
    """Yield the additions of a constant, as large as from all positions to all, to a value."""
    for operation in flow.operations:
        if operation.name not in ADDITIONS:
            continue
        constants = [arg for arg in operation.args if isinstance(arg, Constant)]
        values = [arg for arg in operation.args if isinstance(arg, Value)]
        if len(constants) != 1 or len(values) != 1:
            continue
        (constant,), (value,), ends = constants, values, operation.shape[-2:]
        of_pairs = len(operation.shape) > 2 and ends[0] == ends[1] > 1
        if of_pairs and constant.shape[-2:] == ends and not constant.tensor.is_meta:
            yield operation, constant, value


def _attends(flow: Dataflow, branches: Branches, value: Value) -> bool:
    """Tell whether a value is a product of queries and keys, or one that was scaled or moved."""
    size = np.prod(flow.shape_of(value))
    while True:
        operation = flow.operations[value.operation]
        if branches.attends(operation):
            return True
        same = [each for each in operation.operands() if np.prod(flow.shape_of(each)) == size]
        if len(operation.operands()) != 1 or not same:
            return False
        (value,) = same


def _heads(shape: Sequence[int], images: int) -> int:
    """Return how many heads products of a shape have; they may share a dimension with images."""
    return shape[-3] if len(shape) > 3 else shape[0] // images


def _of_windows(added: Tensor, shape: Sequence[int], flow: Dataflow) -> Array | None:
    """Return what is added by offset, in the first window in which nothing else is added."""
    side, image = shape[-1], flow.operations[0].shape[2:]
    biases = added.detach().double().cpu()
    if len(shape) == 3 and len(biases) > 1 and biases.ndim == 3:
        # Images and heads are one dimension.
        biases = biases.reshape(flow.images, -1, side, side)[:1]
    biases = biases[(None,) * max(0, 4 - biases.ndim)]
    for window in biases.flatten(0, -4).numpy():
        table = by_offset(window, image)
        if table is not None:
            return table
    return None


def by_offset(biases: Array, image: Sequence[int]) -> Array | None:
    """Return biases (heads, tokens, tokens) by offset; None if they depend on anything else.

    Tokens are row by row on a grid, the nearest to a square one that fits. Behind tokens without a
    position they are on a square one, or on one of the proportion of an `image`, (height, width).
    """
    # A mask has two values.
    if not np.isfinite(biases).all() or len(np.unique(biases)) < 3:
        return None
    tokens = biases.shape[-1]
    for prefix in range(min(MOST_PREFIX + 1, tokens - 1)):
        for rows, columns in _grids(tokens - prefix):
            if prefix and rows != columns and rows * image[1] != columns * image[0]:
                continue
            table = _table(biases[:, prefix:, prefix:], rows, columns)
            if table is not None:
                return table
    return None


def _grids(positions: int) -> list[tuple[int, int]]:
    sides = [(n, positions // n) for n in range(1, positions + 1) if positions % n == 0]
    return sorted(sides, key=lambda grid: abs(grid[0] - grid[1]))


def _table(biases: Array, rows: int, columns: int) -> Array | None:
    """Return biases by offset on a grid, if all pairs of one offset have the same."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    down = row[None, :] - row[:, None] + rows - 1
    right = column[None, :] - column[:, None] + columns - 1
    offset = (down * (2 * columns - 1) + right).ravel()
    order = np.argsort(offset, kind="stable")
    starts = np.searchsorted(offset[order], np.arange((2 * rows - 1) * (2 * columns - 1)))
    sorted_ = biases.reshape(len(biases), -1)[:, order]
    lowest, highest = (end.reduceat(sorted_, starts, axis=1) for end in (np.minimum, np.maximum))
    if (highest - lowest).max() > EQUAL * abs(biases).max():
        return None
    table: Array = lowest.reshape(-1, 2 * rows - 1, 2 * columns - 1)
    return table
