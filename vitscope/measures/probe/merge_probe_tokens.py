"""Probes of places and pixels: fitted at each cut point, and how much they read."""

import warnings
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.columns import KEPT, RESAMPLED
from vitscope.measures.given import Parts
from vitscope.measures.intervals import TAILS, bootstrap_means
from vitscope.measures.probe.reading import by_cut_point, folds_of, read_linearly, unit
from vitscope.measures.probe.table import PIXELS, POSITION, TOKEN

# Images that have outliers, from which on something is said of these.
LEAST_IMAGES = 10
_RESAMPLED = f"difference{RESAMPLED}"
# Groups of tokens.
GROUPS = ALL, OTHERS, OUTLIERS = range(3)


def merge_probe_tokens(parts: Parts, threshold: float, resamples: int, seed: int) -> pd.DataFrame:
    """Return what is read of places and pixels at each cut point of a model."""
    found, squares = [], []
    for rows in by_cut_point(parts.tables, [TOKEN]):
        targets = {
            POSITION: rows[["row", "column"]].to_numpy(np.float64),
            PIXELS: np.stack(rows["pixels"].to_list()).astype(np.float64),
        }
        for target, values in targets.items():
            known, each = _of_target(rows, values, rows["norm"].to_numpy() > threshold)
            found.append({"index": rows["index"].iloc[0], "target": target, **known})
            squares.append(each)
    of_images = np.stack(squares, axis=1)
    images, *shape = of_images.shape
    resampled = bootstrap_means(of_images.reshape(images, -1), resamples, seed)
    shares = _shares(of_images.mean(0), resampled.reshape(-1, *shape))
    few = (of_images[:, :, OUTLIERS, 1] > 0).sum(0) < LEAST_IMAGES
    for name in ("r2_outliers", "difference", "difference_low", "difference_high"):
        shares[name][few] = np.nan
    lists = zip(few, shares.pop(_RESAMPLED), strict=True)
    table = pd.DataFrame(found).assign(images=images, **shares)
    table[_RESAMPLED] = [None if none else each for none, each in lists]
    return parts.cut_points.merge(table, on="index", validate="one_to_many")


def _negative_error(found: Array, targets: Array) -> float:
    return -float(np.square(found - targets).sum())


def _of_target(rows: pd.DataFrame, targets: Array, outlier: Array) -> tuple[dict[str, Any], Array]:
    """Return the squared errors and squared deviations of each image, (N, 3, 2): see GROUPS.

    And what is known of them together.
    """
    numbers, image = np.unique(rows["image"], return_inverse=True)
    images = len(numbers)
    # Layers normalize tokens, too: what is read of a longer one would be as far off as it is long.
    vectors = unit(np.stack(rows["vector"].to_list()))
    found = read_linearly(vectors, targets, folds_of(images)[image], _negative_error)
    squares = np.stack([np.square(each - targets).sum(1) for each in (found.read, found.unseen)])
    groups = np.stack([np.ones(len(image), bool), ~outlier, outlier])
    of_images = np.zeros((images, 3, 2))
    np.add.at(of_images, image, (groups[:, None] * squares).transpose(2, 0, 1))
    penalty = float(np.median(found.penalties))
    return {"tokens": len(image), "outliers": int(outlier.sum()), "penalty": penalty}, of_images


def _shares(squares: Array, resampled: Array) -> dict[str, Array]:
    """Return what is read, of rows of squares (K, 3, 2) and of their resamples (R, K, 3, 2)."""
    shares, others = (_share(each) for each in (squares, resampled))
    # Where no resample has outliers, nothing is said of them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        low, high = np.percentile(others[..., ALL], TAILS, axis=0)
        differences = others[..., OTHERS] - others[..., OUTLIERS]
        difference_low, difference_high = np.nanpercentile(differences, TAILS, axis=0)
    return {
        "r2": shares[:, ALL],
        "ci_low": low,
        "ci_high": high,
        "r2_outliers": shares[:, OUTLIERS],
        "difference": shares[:, OTHERS] - shares[:, OUTLIERS],
        "difference_low": difference_low,
        "difference_high": difference_high,
        _RESAMPLED: differences[:KEPT].T.astype(np.float32),
    }


def _share(squares: Array) -> Array:
    """Return the share that is read, of squared errors and deviations (..., 2); NaN of none."""
    errors, deviations = squares[..., 0], squares[..., 1]
    some = deviations > 0
    return np.where(some, 1 - errors / np.where(some, deviations, 1), np.nan)
