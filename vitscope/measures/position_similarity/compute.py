"""Dot products and cosines of the position embeddings of a network."""

from math import ceil

import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnNetwork
from vitscope.networks.attention.found_weights import position_embedding


def similarities(embedding: Array) -> tuple[Array, Array]:
    """Return the dot products and the cosines of all positions of (C, H, W): (P, P) each.

    Cosines with a zero are NaN.
    """
    vectors = embedding.reshape(len(embedding), -1).T
    products: Array = vectors @ vectors.T
    norms = np.sqrt(products.diagonal())
    with np.errstate(invalid="ignore"):
        cosines = products / np.outer(norms, norms)
    return products, cosines


def neighbours(height: int, width: int) -> Array:
    """Tell which positions of a grid lie side by side, or one above the other: (P, P)."""
    row, column = np.divmod(np.arange(height * width), width)
    apart = abs(row[:, None] - row) + abs(column[:, None] - column)
    result: Array = apart == 1
    return result


def measure_position_similarity(given: OnNetwork, positions: int) -> pd.DataFrame:
    found = given.find(position_embedding)
    whole = found.values.detach().double().cpu().numpy()
    if not np.isfinite(whole).all():
        raise VitscopeError(
            f"models.{given.model}: the position embedding '{found.name}' is not finite: check the "
            f"checkpoint."
        )
    step = max(1, ceil((whole[0].size / positions) ** 0.5))
    embedding = whole[:, ::step, ::step]
    height, width = embedding.shape[1:]
    products, cosines = similarities(embedding)
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
            "to_neighbours": _means(cosines, neighbours(height, width)),
            "to_others": _means(cosines, others),
            "products": list(products.astype(np.float32)),
            "cosines": list(cosines.astype(np.float32)),
        }
    )


def _means(values: Array, chosen: Array) -> Array:
    """Return the mean of those values of each row that are chosen; NaN where there are none."""
    there = chosen & np.isfinite(values)
    count = there.sum(axis=1)
    total = np.where(there, values, 0).sum(axis=1)
    return np.where(count > 0, total / np.where(count > 0, count, 1), np.nan)
