"""Probes of classes: fitted at each cut point, and how often they are right."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.columns import RESAMPLED
from vitscope.measures.given import Parts
from vitscope.measures.intervals import spread
from vitscope.measures.probe.reading import (
    by_cut_point,
    folds_of,
    read_linearly,
    votes_of_neighbours,
)
from vitscope.measures.probe.table import LINEAR, MEAN, NEIGHBOURS, PREFIX, TOKEN

_RESAMPLED = f"accuracy{RESAMPLED}"


def accuracy(found: Array, targets: Array) -> float:
    """Return the share of rows whose largest value is that of their class."""
    return float((found.argmax(1) == targets.argmax(1)).mean())


def merge_probe(parts: Parts, neighbours: int, resamples: int, seed: int) -> pd.DataFrame:
    """Return how well classes are read at each cut point of a model."""
    found, right = [], []
    for rows in by_cut_point(parts.tables, (MEAN, PREFIX, TOKEN)):
        # Of the tokens one: as many vectors as of the others.
        for of, vectors in rows[rows["token"] == 0].groupby("of"):
            for known, each in _of_vectors(vectors, neighbours):
                found.append({"index": rows["index"].iloc[0], "of": of, **known})
                right.append(each)
    images = np.stack(right, axis=1).astype(np.float64)
    shares = {"accuracy": images.mean(axis=0)}
    shares |= spread(images, resamples, seed).columns("accuracy")
    table = pd.DataFrame(found).assign(images=len(images), **shares)
    # No claim is about the others.
    claimed = (table["by"] == LINEAR) & (table["of"] != TOKEN)
    table[_RESAMPLED] = table[_RESAMPLED].where(claimed, None)
    return parts.cut_points.merge(table, on="index", validate="one_to_many")


def _of_vectors(rows: pd.DataFrame, neighbours: int) -> Iterator[tuple[dict[str, Any], Array]]:
    """Yield whether the class of each image is read from one vector of it, in both ways."""
    labels, predicted = rows["label"].to_numpy(), rows["predicted"].to_numpy()
    if (labels < 0).any():
        raise VitscopeError(
            f"probe: {int((labels < 0).sum())} of {len(labels)} images have no label, so that no "
            "class can be read: use a source with labels."
        )
    _, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    targets, folds = np.eye(len(counts))[numbers], folds_of(len(labels))
    vectors = np.stack(rows["vector"].to_list()).astype(np.float64)
    linear = read_linearly(vectors, targets, folds, accuracy)
    votes = votes_of_neighbours(vectors, targets, folds, neighbours)
    known = {
        "classes": len(counts),
        "chance": counts.max() / len(labels),
        "network": (predicted == labels).mean() if (predicted >= 0).all() else np.nan,
    }
    penalty = float(np.median(linear.penalties))
    for by, read, chosen in ((LINEAR, linear.read, penalty), (NEIGHBOURS, votes, np.nan)):
        yield {**known, "by": by, "penalty": chosen}, read.argmax(1) == numbers
