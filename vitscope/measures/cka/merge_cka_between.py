"""CKA of each cut point of one network with each of another, from the Gram matrices of both.

The cut points of both are measured as if they belonged to one network, by the same operations:
so the CKA of a network with itself is as in the table `cka`, to the last digit.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.cka.compute import hsic_rows
from vitscope.measures.cka.merge import mean_cka
from vitscope.measures.given import Parts


def _batches(tables: Iterable[pd.DataFrame]) -> Iterator[tuple[int, Array]]:
    """Yield the first image of each batch, and the Gram matrices of all cut points."""
    for table in tables:
        for first_image, rows in table.groupby("first_image"):
            images = rows["images"].iloc[0]
            row, column = np.triu_indices(images)
            grams = np.empty((len(rows), images, images))
            grams[:, row, column] = np.stack(rows.sort_values("index")["gram"].to_list())
            grams[:, column, row] = grams[:, row, column]
            yield int(str(first_image)), grams


def _both(parts: Parts, others: Parts) -> Iterator[tuple[int, Array, Array]]:
    """Yield the first image of each batch, and the Gram matrices of both models."""
    for one, other in zip_longest(_batches(parts.tables), _batches(others.tables)):
        if not (one and other and one[0] == other[0] and one[1].shape[1:] == other[1].shape[1:]):
            raise VitscopeError(
                f"The parts of '{parts.model}' and '{others.model}' are of different images: "
                "delete those of both and run again."
            )
        yield *one, other[1]


def merge_cka_between(parts: Parts, others: Parts) -> pd.DataFrame:
    batches, own = [], 0
    for first_image, ours, theirs in _both(parts, others):
        own, grams = len(ours), np.concatenate([ours, theirs])
        batches.append(hsic_rows(len(grams), [(first_image, grams)]))
    rows = mean_cka(parts.model, batches)
    between = rows[(rows["index"] < own) & (rows["other_index"] >= own)]
    return between.assign(
        other_model=others.model, other_index=between["other_index"] - own
    ).reset_index(drop=True)
