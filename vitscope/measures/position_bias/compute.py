"""The relative position biases of a network, by layer and head."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import OnNetwork
from vitscope.networks.attention.found_weights import PositionBias, position_biases


def measure_position_bias(given: OnNetwork) -> pd.DataFrame:
    found = given.find(position_biases)
    rows = [row for layer, bias in enumerate(found) for row in _rows(layer, bias)]
    table = pd.DataFrame(rows).assign(model=given.model)
    return table.astype({"head": "Int32"})


def _rows(layer: int, bias: PositionBias) -> Iterator[dict[str, Any]]:
    height, width = bias.values.shape[1:]
    for head, values in enumerate(bias.values):
        yield {
            "layer": layer,
            "module": bias.module,
            "head": None if bias.shared else head,
            "height": height,
            "width": width,
            "at_itself": values[height // 2, width // 2],
            "to_neighbours": _beside(values).mean() if height * width > 1 else np.nan,
            "lowest": values.min(),
            "highest": values.max(),
            "values": values.ravel(),
        }


def _beside(values: Array) -> Array:
    """Return the values at offsets of one, down or to the right."""
    row, column = np.indices(values.shape) - np.array(values.shape)[:, None, None] // 2
    beside: Array = values[abs(row) + abs(column) == 1]
    return beside
