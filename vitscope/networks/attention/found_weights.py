"""Find weights by what a network does with them: embeddings, biases and filters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.files.arrays import Array
from vitscope.networks.finding.branches import attends
from vitscope.networks.finding.cut_points import Layout
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.finding.dataflow_recorder import name_of_constant, record_with_values
from vitscope.networks.finding.operations import ADDITIONS, CONVOLUTIONS, PRODUCTS
from vitscope.networks.finding.positions import Positions, PositionTracer
from vitscope.networks.finding.recorded_pass import RecordedPass

# Allow at most this many class tokens and registers before the tokens with positions.
MOST_PREFIX = 8
# Treat biases of the same offset as equal if they differ by less than this share of the largest
# bias.
EQUAL = 1e-5


@dataclass(frozen=True)
class PositionBias:
    """A layer's biases by the offset from query to key; offset zero is in the middle."""

    module: str
    # (heads, 2 rows - 1, 2 columns - 1), with one head if all heads share the bias.
    values: Array
    shared: bool


def position_bias_weights(model: nn.Module, network: Mapping[str, Any]) -> list[PositionBias]:
    flow = record_with_values(model, network)
    found = []
    for operation in flow.operations:
        added, ends = _find_added_weights(operation), operation.shape[-2:]
        of_pairs = len(operation.shape) > 2 and ends[0] == ends[1] > 1
        if added is None or not of_pairs:
            continue
        constant, value = added
        # The constant must cover all pairs of positions.
        if constant.shape[-2:] == ends and _holds_attention_scores(flow, value):
            shape = flow.shape_of(value)
            table = _bias_weights_of_first_window(constant.tensor, shape, flow)
            if table is not None:
                # Heads and images may share a dimension.
                heads = shape[-3] if len(shape) > 3 else shape[0] // flow.images
                found.append(PositionBias(operation.module, table, len(table) == 1 < heads))
    if not found:
        raise VitscopeError(
            "the network has no relative position bias: it adds nothing to the products of queries "
            "and keys that depends on the offset between two positions alone."
        )
    return found


def _find_added_weights(operation: Operation) -> tuple[Constant, Value] | None:
    constants = [arg for arg in operation.args if isinstance(arg, Constant)]
    values = [arg for arg in operation.args if isinstance(arg, Value)]
    if operation.name not in ADDITIONS or not len(constants) == len(values) == 1:
        return None
    return None if constants[0].tensor.is_meta else (constants[0], values[0])


def _holds_attention_scores(flow: Dataflow, value: Value) -> bool:
    """Tell whether a value is a product of queries and keys, perhaps scaled or rearranged."""
    size = np.prod(flow.shape_of(value))
    while True:
        operation = flow.operations[value.operation]
        if attends(operation):
            return True
        same = [each for each in operation.operands if np.prod(flow.shape_of(each)) == size]
        if len(operation.operands) != 1 or not same:
            return False
        (value,) = same


def _bias_weights_of_first_window(
    added: Tensor, shape: Sequence[int], flow: Dataflow
) -> Array | None:
    """Return, by offset, the biases of the first window where the offset alone decides them."""
    side, image = shape[-1], flow.operations[0].shape[2:]
    biases = added.detach().double().cpu()
    if len(shape) == 3 and len(biases) > 1 and biases.ndim == 3:
        # Images and heads share one dimension.
        biases = biases.reshape(flow.images, -1, side, side)[:1]
    biases = biases[(None,) * max(0, 4 - biases.ndim)]
    for window in biases.flatten(0, -4).numpy():
        table = bias_weights_by_offset(window, image)
        if table is not None:
            return table
    return None


def bias_weights_by_offset(biases: Array, image: Sequence[int]) -> Array | None:
    """Return `biases` (heads, tokens, tokens) by offset; None if they depend on anything else."""
    # Skip masks: they have only two values.
    if not np.isfinite(biases).all() or len(np.unique(biases)) < 3:
        return None
    tokens = biases.shape[-1]
    for prefix in range(min(MOST_PREFIX + 1, tokens - 1)):
        # After a prefix, the grid must be square or have the proportions of the image.
        count = tokens - prefix
        grids = [(n, count // n) for n in range(1, count + 1) if count % n == 0]
        for rows, columns in sorted(grids, key=lambda grid: abs(grid[0] - grid[1])):
            if prefix and rows != columns and rows * image[1] != columns * image[0]:
                continue
            table = _bias_weights_on_grid(biases[:, prefix:, prefix:], rows, columns)
            if table is not None:
                return table
    return None


def _bias_weights_on_grid(biases: Array, rows: int, columns: int) -> Array | None:
    """Return biases by offset on a grid; None if biases of the same offset differ."""
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
    return lowest.reshape(-1, 2 * rows - 1, 2 * columns - 1)


class Named(NamedTuple):
    """A tensor, and the name of its parameter or of the module that takes or computes it."""

    name: str
    values: Tensor


def position_embedding_weights(model: nn.Module, network: Mapping[str, Any]) -> Named:
    """Return the position embedding (channels, rows, columns) of a model that has its weights."""
    recorded = RecordedPass(model, record_with_values(model, network))
    for index in recorded.dominators:
        operation = recorded.operations[index]
        constant, _ = _find_added_weights(operation) or (None, None)
        layout = recorded.maps.layout(index) if constant else None
        if constant and layout and _differs_between_positions(constant, operation, layout):
            added = constant.tensor.expand(operation.shape)
            name = name_of_constant(model, constant) or operation.module or type(model).__name__
            return Named(name, layout.to_nchw(added)[0])
    raise VitscopeError(
        "the network has no position embedding: it adds nothing to its tokens that differs between "
        "positions and is the same for all images."
    )


def _differs_between_positions(constant: Constant, operation: Operation, layout: Layout) -> bool:
    ahead = len(operation.shape) - len(constant.shape)
    spatial = (at - ahead for at, letter in enumerate(layout.order) if letter in "hwl")
    return any(at >= 0 and constant.shape[at] > 1 for at in spatial)


def first_projection_weights(model: nn.Module, network: Mapping[str, Any]) -> Named:
    """Return a model's first projection as filters (filters, channels, rows, columns)."""
    flow = record_with_values(model, network)
    for operation in flow.operations:
        if operation.name in CONVOLUTIONS and isinstance(operation.args[1], Constant):
            filters, module = operation.args[1].tensor, quoted(operation.module)
            transposed = len(operation.args) > 6 and operation.args[6] is True
            if filters.ndim != 4 or transposed:
                raise VitscopeError(
                    f"the first layer of the network, {module}, is a convolution of another kind "
                    f"than that of images by filters of two dimensions, which can be shown."
                )
            return Named(operation.module, filters)
        if operation.name in PRODUCTS and (factors := _value_and_matrix_weights(operation)):
            return Named(
                operation.module, _filters_of_linear_weights(flow, operation.module, *factors)
            )
    raise VitscopeError(
        "the network has no filters: no convolution, and no product with a matrix, takes the "
        "values of images."
    )


def _value_and_matrix_weights(operation: Operation) -> tuple[Value, int, Tensor] | None:
    """Return the value that a matrix multiplies, its dimension, and the matrix as (out, in)."""
    left, right = operation.args[-2:]
    if isinstance(left, Value) and isinstance(right, Constant):
        return left, -1, right.tensor.mT
    if isinstance(left, Constant) and isinstance(right, Value):
        return right, -2, left.tensor
    return None


def _filters_of_linear_weights(
    flow: Dataflow, module: str, value: Value, dimension: int, matrix: Tensor
) -> Tensor:
    """Return a linear layer's weights as filters: trace which pixel each weight multiplies."""
    if matrix.ndim == 3 and (matrix == matrix[:1]).all():
        matrix = matrix[0]
    pixels = _find_pixels_of_weights(flow, value, dimension)
    if matrix.ndim != 2 or pixels is None:
        raise VitscopeError(
            f"the first layer of the network, {quoted(module)}, is a product with a "
            f"matrix, and nothing tells which pixel of an image each of its weights is for."
        )
    channel, row, column = (each.long() for each in pixels)
    row, column = row - row.min(), column - column.min()
    shape = [int(each.max()) + 1 for each in (channel, row, column)]
    filters = matrix.new_zeros(len(matrix), *shape)
    filters[:, channel, row, column] = matrix
    return filters


def _find_pixels_of_weights(flow: Dataflow, value: Value, dimension: int) -> Tensor | None:
    channels, height, width = flow.operations[0].shape[1:]
    # Trace channel, row and column in place of image, row and column.
    axes = (
        torch.arange(count, dtype=torch.float32).view([-1 if d == at else 1 for d in range(4)])
        for at, count in ((1, channels), (2, height), (3, width))
    )
    found = PositionTracer(flow, Positions(*axes)).positions(value)
    if found is None:
        return None
    shape = flow.shape_of(value)
    full = torch.stack([each.expand(shape) for each in found])
    taken = full.movedim(dimension, -1).flatten(1, -2)[:, 0]
    if taken.isnan().any():
        return None
    least, most, count = taken.amin(1), taken.amax(1), taken.shape[1]
    # The pixels must fill a patch of the image, each pixel once.
    once = len(set(map(tuple, taken.T.tolist()))) == count
    whole = int((most - least + 1).prod()) == count
    return taken if once and whole and float(least[0]) == 0 else None
