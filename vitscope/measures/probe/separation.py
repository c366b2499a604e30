"""How far apart classes lie, from the vectors of images: means of classes, and scatter in them."""

import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import bootstrap_counts, ratio, spread_of_resamples
from vitscope.measures.given import Parts
from vitscope.measures.probe.measure import MEAN, PREFIX
from vitscope.measures.probe.reading import (
    Numbers,
    probed_vectors_by_cut_point,
    scale_to_unit_length,
)

# Vectors that differ by no more than rounding, of their size, have no classes.
ALIKE = 1e-12


def class_separation(vectors: Array, numbers: Numbers, counts: Array) -> Array:
    """Return the separation (R,) of vectors of unit length by class, in each resample.

    `counts` (R, N) says how often each vector is in a resample. An image is no pair with itself,
    nor with its copies in a resample, and a class without a pair is left out.
    """
    within, classes = np.zeros((2, len(counts)))
    total, squares = np.zeros((len(counts), vectors.shape[1])), np.zeros(len(counts))
    for number in range(numbers.max() + 1):
        rows = np.flatnonzero(numbers == number)
        weights, own = counts[:, rows], np.square(vectors[rows]).sum(1)
        images, copies = weights.sum(1), np.square(weights)
        pairs = np.square(images) - copies.sum(1)
        there = pairs > 0
        summed = np.where(there[:, None], weights @ vectors[rows], 0)
        within += ratio(np.square(summed).sum(1) - copies @ own, pairs, 0) * there
        mean = summed / np.where(there, images, 1)[:, None]
        total, squares = total + mean, squares + np.square(mean).sum(1)
        classes += there
    # The mean cosine of two classes is the product of their means.
    overall = ratio(np.square(total).sum(1) - squares + within, np.square(classes))
    distance = 1 - overall
    return 1 - ratio(1 - ratio(within, classes), np.where(distance > ALIKE, distance, 0))


def variability_collapse(vectors: Array, numbers: Numbers) -> float:
    """Return NC1: the trace of the scatter in classes over that of their means, per class.

    It is NaN where a class has a single image, which has no scatter.
    """
    classes = int(numbers.max()) + 1
    if np.bincount(numbers).min() < 2:
        return np.nan
    means = np.stack([vectors[numbers == each].mean(0) for each in range(classes)])
    about, apart = vectors - means[numbers], means - means.mean(0)
    if np.square(apart).sum() <= ALIKE * np.square(means).sum():
        return np.nan
    within, between = about.T @ about / len(vectors), apart.T @ apart / classes
    return float(np.trace(within @ np.linalg.pinv(between, hermitian=True))) / classes


def merge_class_separation(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    found = []
    for rows in probed_vectors_by_cut_point(parts.tables, (MEAN, PREFIX)):
        for of, vectors in rows.groupby("of"):
            columns = _separate_classes(vectors, resamples, seed)
            found.append({"index": rows["index"].iloc[0], "of": of, **columns})
    return parts.cut_points.merge(pd.DataFrame(found), on="index", validate="one_to_many")


def _separate_classes(rows: pd.DataFrame, resamples: int, seed: int) -> dict[str, object]:
    labels, numbers = np.unique(rows["label"], return_inverse=True)
    if labels[0] < 0 or np.sum(np.bincount(numbers) > 1) < 2:
        raise VitscopeError(
            "class_separation: found images without labels, or fewer than two classes with two "
            "images each: use a source with labels, and raise `analysis.images`."
        )
    vectors = np.stack(rows["vector"].to_list()).astype(np.float64)
    given = scale_to_unit_length(vectors), numbers
    resampled = [
        class_separation(*given, counts) for counts in bootstrap_counts(len(rows), resamples, seed)
    ]
    ends = spread_of_resamples(np.concatenate(resampled)[:, None])
    (separation,) = class_separation(*given, np.ones((1, len(rows))))
    return {
        "images": len(rows),
        "classes": len(labels),
        "separation": separation,
        "ci_low": ends.low[0],
        "ci_high": ends.high[0],
        "separation_resampled": ends.kept(0),
        "nc1": variability_collapse(vectors, numbers),
    }
