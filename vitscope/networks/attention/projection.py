"""The first layer of a network that has weights: what it multiplies the values of images by.

It is found in what the network computes: the first convolution, or product with a matrix.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.attention.with_values import record_with_values
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.finding.operations import CONVOLUTIONS, PRODUCTS
from vitscope.networks.finding.positions import Positions, Tracer


@dataclass(frozen=True)
class Projection:
    """The filters of a layer, (filters, channels, rows, columns), and the module that it is in."""

    module: str
    filters: Tensor


def first_projection(model: nn.Module, network: Mapping[str, Any]) -> Projection:
    """Return the first projection of a model with weights, which a study describes as `network`."""
    flow = record_with_values(model, network)
    for operation in flow.operations:
        if operation.name in CONVOLUTIONS and isinstance(operation.args[1], Constant):
            return Projection(operation.module, _of_convolution(operation))
        if operation.name in PRODUCTS and _factors(operation) is not None:
            return Projection(operation.module, _of_product(flow, operation))
    raise VitscopeError(
        "the network has no filters: no convolution, and no product with a matrix, takes the "
        "values of images."
    )


def _of_convolution(operation: Operation) -> Tensor:
    filters: Tensor = operation.args[1].tensor
    transposed = len(operation.args) > 6 and operation.args[6] is True
    if filters.ndim != 4 or transposed:
        raise VitscopeError(
            f"the first layer of the network, {quoted(operation.module)}, is a convolution of "
            f"another kind than that of images by filters of two dimensions, which can be shown."
        )
    return filters


def _factors(operation: Operation) -> tuple[Value, int, Tensor] | None:
    """Return what a matrix is multiplied by, along which dimension, and the matrix: (out, in)."""
    left, right = operation.args[-2:]
    if isinstance(left, Value) and isinstance(right, Constant):
        return left, -1, right.tensor.mT
    if isinstance(left, Constant) and isinstance(right, Value):
        return right, -2, left.tensor
    return None


def _of_product(flow: Dataflow, operation: Operation) -> Tensor:
    """Return the weights of a linear layer as filters: which pixel each one takes is traced."""
    factors = _factors(operation)
    assert factors is not None
    value, dimension, matrix = factors
    if matrix.ndim == 3 and (matrix == matrix[:1]).all():
        matrix = matrix[0]
    pixels = _pixels(flow, value, dimension)
    if matrix.ndim != 2 or pixels is None:
        raise VitscopeError(
            f"the first layer of the network, {quoted(operation.module)}, is a product with a "
            f"matrix, and nothing tells which pixel of an image each of its weights is for."
        )
    channel, row, column = (each.long() for each in pixels)
    row, column = row - row.min(), column - column.min()
    shape = [int(each.max()) + 1 for each in (channel, row, column)]
    filters = matrix.new_zeros(len(matrix), *shape)
    filters[:, channel, row, column] = matrix
    return filters


def _pixels(flow: Dataflow, value: Value, dimension: int) -> Tensor | None:
    """Return channel, row and column of the values that the first vector of a product takes."""
    channels, height, width = flow.operations[0].shape[1:]
    # Coordinates of any kind are moved as values are.
    axes = (
        torch.arange(count, dtype=torch.float32).view([-1 if d == at else 1 for d in range(4)])
        for at, count in ((1, channels), (2, height), (3, width))
    )
    found = Tracer(flow, Positions(*axes)).positions(value)
    if found is None:
        return None
    shape = flow.shape_of(value)
    full = torch.stack([each.expand(shape) for each in (found.image, found.row, found.column)])
    taken = full.movedim(dimension, -1).flatten(1, -2)[:, 0]
    return taken if _fill_a_patch(taken) else None


def _fill_a_patch(pixels: Tensor) -> bool:
    """Tell whether channels, rows and columns fill a patch of the image, each pixel once."""
    if pixels.isnan().any():
        return False
    least, most = pixels.amin(1), pixels.amax(1)
    once = len(set(map(tuple, pixels.T.tolist()))) == pixels.shape[1]
    whole = int((most - least + 1).prod()) == pixels.shape[1]
    return once and whole and float(least[0]) == 0
