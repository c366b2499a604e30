from math import ceil
from typing import Any

import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import ratio
from vitscope.measures.given import OnNetwork
from vitscope.networks.attention.found_weights import (
    position_bias_weights,
    position_embedding_weights,
)


def position_similarities(embedding: Array) -> tuple[Array, Array]:
    """Return dot products and cosines, each (P, P), of all pairs of positions.

    `embedding` has the shape (C, H, W), and P = H * W.
    """
    vectors = embedding.reshape(len(embedding), -1).T
    products: Array = vectors @ vectors.T
    norms = np.sqrt(products.diagonal())
    with np.errstate(invalid="ignore"):
        cosines = products / np.outer(norms, norms)
    return products, cosines


def neighbouring_positions(height: int, width: int) -> Array:
    """Return a mask (P, P) of the pairs of positions that are neighbours in a row or a column."""
    row, column = np.divmod(np.arange(height * width), width)
    apart = abs(row[:, None] - row) + abs(column[:, None] - column)
    return np.equal(apart, 1)


def measure_position_similarity(given: OnNetwork, positions: int) -> pd.DataFrame:
    found = given.find(position_embedding_weights)
    whole = found.values.detach().double().cpu().numpy()
    if not np.isfinite(whole).all():
        raise VitscopeError(
            f"models.{given.model}: the position embedding '{found.name}' is not finite: check the "
            f"checkpoint."
        )
    step = max(1, ceil((whole[0].size / positions) ** 0.5))
    embedding = whole[:, ::step, ::step]
    height, width = embedding.shape[1:]
    products, cosines = position_similarities(embedding)
    row, column = np.divmod(np.arange(height * width), width)
    others = ~np.eye(height * width, dtype=bool)
    return pd.DataFrame(
        {
            "model": given.model,
            "embedding": found.name,
            "height": height,
            "width": width,
            "step": step,
            "row": row,
            "column": column,
            "norm": np.sqrt(products.diagonal()),
            "to_neighbours": _mean_cosines(cosines, neighbouring_positions(height, width)),
            "to_others": _mean_cosines(cosines, others),
            "products": list(products.astype(np.float32)),
            "cosines": list(cosines.astype(np.float32)),
        }
    )


def _mean_cosines(values: Array, chosen: Array) -> Array:
    there = chosen & np.isfinite(values)
    return ratio(np.where(there, values, 0).sum(axis=1), there.sum(axis=1))


def measure_position_bias(given: OnNetwork) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for layer, bias in enumerate(given.find(position_bias_weights)):
        height, width = bias.values.shape[1:]
        row, column = np.indices((height, width))
        beside = abs(row - height // 2) + abs(column - width // 2) == 1
        rows += [
            {
                "layer": layer,
                "module": bias.module,
                "head": None if bias.shared else head,
                "height": height,
                "width": width,
                "at_itself": values[height // 2, width // 2],
                "to_neighbours": values[beside].mean() if height * width > 1 else np.nan,
                "lowest": values.min(),
                "highest": values.max(),
                "values": values.ravel(),
            }
            for head, values in enumerate(bias.values)
        ]
    return pd.DataFrame(rows).assign(model=given.model).astype({"head": "Int32"})
