"""CKA of all pairs of cut points, from the HSIC of all batches."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.given import Parts


def _by_batch(rows: pd.DataFrame) -> Array:
    """Return the HSIC of each batch in order, (batches, K, K)."""
    pairs = rows.pivot(index="first_image", columns=["index", "other_index"], values="hsic")
    count = rows["index"].max() + 1
    upper = np.zeros((len(pairs), count, count))
    upper[:, *np.triu_indices(count)] = pairs.to_numpy()
    return np.where(np.tri(count, dtype=bool), np.swapaxes(upper, 1, 2), upper)


def _cka(hsic: Array) -> Array:
    """Return the CKA of all pairs, (..., K, K), from their HSIC."""
    own = np.diagonal(hsic, axis1=-2, axis2=-1)
    known = np.where(own > 0, own, np.nan)
    found: Array = hsic / np.sqrt(known[..., :, None] * known[..., None, :])
    return found


def mean_cka(model: str, shards: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the CKA of all pairs of cut points, each pair in both orders, from all shards.

    It is NaN where one of the two cut points has the same map for all images.
    """
    rows = pd.concat(shards)
    return _table(model, rows, _by_batch(rows))


def _table(model: str, rows: pd.DataFrame, batches: Array) -> pd.DataFrame:
    means = batches.mean(axis=0)
    index, other = np.indices(means.shape).reshape(2, -1)
    return pd.DataFrame(
        {
            "model": model,
            "index": index,
            "other_index": other,
            "images": rows.groupby("first_image")["images"].first().sum(),
            "batches": len(batches),
            "hsic": means.ravel(),
            "cka": _cka(means).ravel(),
        }
    )


def without_each_batch(batches: Array) -> list[Any]:
    """Return the CKA of each pair without each batch in turn, a list for each pair in order.

    Each pair has one in one of its orders, and has none if there is but one batch.
    """
    count, size, _ = batches.shape
    lists: list[Any] = [None] * size**2
    if count > 1:
        left = _cka((batches.sum(axis=0) - batches) / (count - 1)).astype(np.float32)
        for index, other in zip(*np.triu_indices(size, k=1), strict=True):
            lists[index * size + other] = left[:, index, other]
    return lists


def merge_cka(parts: Parts) -> pd.DataFrame:
    rows = pd.concat(parts.tables)
    batches = _by_batch(rows)
    return _table(parts.model, rows, batches).assign(cka_without=without_each_batch(batches))
