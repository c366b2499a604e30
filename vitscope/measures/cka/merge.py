"""CKA of all pairs of cut points, from the HSIC of all batches."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from vitscope.measures.given import Parts


def mean_cka(model: str, shards: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the CKA of all pairs of cut points, each pair in both orders, from all shards.

    It is NaN where one of the two cut points has the same map for all images.
    """
    rows = pd.concat(shards)
    batches = rows.pivot(index="first_image", columns=["index", "other_index"], values="hsic")
    images = rows.groupby("first_image")["images"].first().sum()
    count = rows["index"].max() + 1
    upper = np.zeros((count, count))
    upper[np.triu_indices(count)] = batches.to_numpy().mean(axis=0)
    means = np.where(np.tri(count, dtype=bool), upper.T, upper)
    own = np.diag(means)
    known = np.where(own > 0, own, np.nan)
    index, other = np.indices(means.shape).reshape(2, -1)
    return pd.DataFrame(
        {
            "model": model,
            "index": index,
            "other_index": other,
            "images": images,
            "batches": len(batches),
            "hsic": means.ravel(),
            "cka": (means / np.sqrt(known[:, None] * known)).ravel(),
        }
    )


def merge(parts: Parts) -> pd.DataFrame:
    return mean_cka(parts.model, parts.tables)
