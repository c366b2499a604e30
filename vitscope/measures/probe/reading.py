"""Predict targets from vectors by folds: ridge regression in closed form, and votes of neighbours.

Ridge regression needs only the moments of vectors and targets. They are computed once for each
fold, and added to get the moments of several folds together.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.claims.intervals import KEPT, RESAMPLED, TAILS
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import bootstrap_image_means, ratio, spread
from vitscope.measures.given import Parts
from vitscope.measures.probe.measure import (
    FOLDS,
    LINEAR,
    MEAN,
    NEIGHBOURS,
    PIXELS,
    POSITION,
    PREFIX,
    TOKEN,
)

Numbers = npt.NDArray[np.int64]

# Penalties to choose from; each is added to the variance of every channel, which is 1.
PENALTIES = tuple(10.0**power for power in range(-6, 3))
# A channel's variance is rounding error if it is at most this times the square of its mean.
ALIKE = float(np.finfo(np.float32).eps) ** 2
# The weight of a vote is exp(cosine / TEMPERATURE).
TEMPERATURE = 0.07
# The number of vectors whose neighbours are found at a time.
AT_ONCE = 1024
# Decimals of a cosine that are kept; further ones are rounding errors.
DIGITS = 9


def folds_of(images: int) -> Numbers:
    """Return the fold of each image; folds are random, with sizes that differ by one at most."""
    return np.random.default_rng(0).permutation(images) % FOLDS


def probed_vectors_by_cut_point(
    tables: Iterable[pd.DataFrame], of: Iterable[str]
) -> Iterator[pd.DataFrame]:
    """Yield, for each cut point, the rows of all parts for the kinds of vectors in `of`.

    Rows are sorted by kind, token and image.
    """
    wanted = [*of]
    with TemporaryDirectory(prefix="vitscope-") as folder:
        files: dict[int, list[Path]] = {}
        for part, table in enumerate(tables):
            for index in table["index"].unique().tolist():
                file = Path(folder) / f"{index}_{part}.parquet"
                table[(table["index"] == index) & table["of"].isin(wanted)].to_parquet(file)
                files.setdefault(index, []).append(file)
        for index in sorted(files):
            found = pd.concat([pd.read_parquet(file) for file in files[index]])
            yield found.sort_values(["of", "token", "image"], ignore_index=True)


@dataclass(frozen=True, eq=False)
class Moments:
    """Holds the count of vectors, the means of vectors and targets, and sums of centred products.

    The sum of the moments of two groups is the moments of both groups together. Products are of
    differences from the means, so that few digits are lost.
    """

    count: int
    centre: Array
    mean: Array
    products: Array
    with_targets: Array

    def __add__(self, other: "Moments") -> "Moments":
        count = self.count + other.count
        share, weight = other.count / count, self.count * other.count / count
        apart, targets = other.centre - self.centre, other.mean - self.mean
        return Moments(
            count,
            self.centre + share * apart,
            self.mean + share * targets,
            self.products + other.products + weight * np.outer(apart, apart),
            self.with_targets + other.with_targets + weight * np.outer(apart, targets),
        )


def moments_of(vectors: Array, targets: Array) -> Moments:
    """Return the moments of vectors (N, C) and targets (N, K), with N at least 1."""
    centre, mean = vectors.mean(0, dtype=np.float64), targets.mean(0, dtype=np.float64)
    about = vectors - centre
    return Moments(len(vectors), centre, mean, about.T @ about, about.T @ (targets - mean))


class Ridge:
    """Fits ridge regression with an intercept, on channels scaled to unit variance.

    The moments are decomposed once, so that predictions with further penalties are cheap.
    """

    def __init__(self, moments: Moments) -> None:
        self.centre, self.mean = moments.centre, moments.mean
        variances = moments.products.diagonal() / moments.count
        known = variances > ALIKE * np.square(self.centre)
        self._scale = np.where(known, 1 / np.sqrt(np.where(known, variances, 1)), 0)
        scaled = moments.products * np.outer(self._scale, self._scale) / moments.count
        values, self._axes = np.linalg.eigh(scaled)
        self._values = values.clip(min=0)
        covariances = moments.with_targets * self._scale[:, None] / moments.count
        self._along = self._axes.T @ covariances

    def predict(self, vectors: Array, penalty: float) -> Array:
        """Predict the targets (N, K) of vectors."""
        weights = self._axes @ (self._along / (self._values + penalty)[:, None])
        return (vectors - self.centre) @ (weights * self._scale[:, None]) + self.mean


@dataclass(frozen=True, eq=False)
class Read:
    """Holds the predictions for each vector (`read`), and the penalty of each fold.

    `unseen` holds, for each vector, the mean of the targets of the other folds, which the probe
    was fitted on.
    """

    read: Array
    unseen: Array
    penalties: list[float]


def read_linearly(
    vectors: Array, targets: Array, folds: Numbers, score: Callable[[Array, Array], float]
) -> Read:
    """Predict targets (N, K) from vectors (N, C); for each fold, fit on the other folds.

    The penalty for a fold is the one that scores highest on the next fold, after a fit without both
    folds; the largest wins a tie.
    """
    rows = [np.flatnonzero(folds == fold) for fold in range(FOLDS)]
    moments = [moments_of(vectors[each], targets[each]) for each in rows]
    read, unseen = np.empty(targets.shape), np.empty(targets.shape)
    penalties = []
    for fold in range(FOLDS):
        trial = (fold + 1) % FOLDS
        rest = [each for n, each in enumerate(moments) if n not in (fold, trial)]
        fitted, held = Ridge(reduce(Moments.__add__, rest)), rows[trial]
        scores = {p: score(fitted.predict(vectors[held], p), targets[held]) for p in PENALTIES}
        penalty = max(PENALTIES, key=lambda p: (scores[p], p))
        fitted = Ridge(reduce(Moments.__add__, [*rest, moments[trial]]))
        read[rows[fold]] = fitted.predict(vectors[rows[fold]], penalty)
        unseen[rows[fold]] = fitted.mean
        penalties.append(penalty)
    return Read(read, unseen, penalties)


def scale_to_unit_length(vectors: Array) -> Array:
    """Scale vectors to length 1; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)


def read_by_neighbours(vectors: Array, targets: Array, folds: Numbers, neighbours: int) -> Array:
    """Return the votes (N, K) of the nearest vectors, by cosine, in the other folds."""
    scaled = scale_to_unit_length(vectors)
    votes = np.empty(targets.shape)
    for fold in range(FOLDS):
        others = np.flatnonzero(folds != fold)
        count = min(neighbours, len(others))
        asking = np.flatnonzero(folds == fold)
        for rows in np.split(asking, range(AT_ONCE, len(asking), AT_ONCE)):
            cosines = scaled[rows] @ scaled[others].T
            # Prefer the first of the vectors that are equally near up to rounding.
            near = cosines.round(DIGITS) - 10.0**-DIGITS / len(others) * np.arange(len(others))
            nearest = np.argpartition(-near, count - 1, axis=1)[:, :count]
            weights = np.exp(np.take_along_axis(cosines, nearest, 1) / TEMPERATURE)
            votes[rows] = np.einsum("nk,nkc->nc", weights, targets[others[nearest]])
    return votes


_RESAMPLED = f"accuracy{RESAMPLED}"


def accuracy(found: Array, targets: Array) -> float:
    """Return the share of rows whose largest value is in the column of their class."""
    return float((found.argmax(1) == targets.argmax(1)).mean())


def merge_probe(parts: Parts, neighbours: int, resamples: int, seed: int) -> pd.DataFrame:
    found, right = [], []
    for rows in probed_vectors_by_cut_point(parts.tables, (MEAN, PREFIX, TOKEN)):
        # Keep only the first drawn token, so that there is one vector of each kind for each image.
        for of, vectors in rows[rows["token"] == 0].groupby("of"):
            for known, each in _read_classes(vectors, neighbours):
                found.append({"index": rows["index"].iloc[0], "of": of, **known})
                right.append(each)
    images = np.stack(right, axis=1).astype(np.float64)
    shares = {"accuracy": images.mean(axis=0)}
    shares |= spread(images, resamples, seed).columns("accuracy")
    table = pd.DataFrame(found).assign(images=len(images), **shares)
    claimed = (table["by"] == LINEAR) & (table["of"] != TOKEN)
    table[_RESAMPLED] = table[_RESAMPLED].where(claimed, None)
    return parts.cut_points.merge(table, on="index", validate="one_to_many")


def _read_classes(rows: pd.DataFrame, neighbours: int) -> Iterator[tuple[dict[str, Any], Array]]:
    """Read classes from vectors, first linearly, then by neighbours.

    Yield columns of the table, and whether each image is classified correctly.
    """
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
    votes = read_by_neighbours(vectors, targets, folds, neighbours)
    known = {
        "classes": len(counts),
        "chance": counts.max() / len(labels),
        "network": (predicted == labels).mean() if (predicted >= 0).all() else np.nan,
    }
    penalty = float(np.median(linear.penalties))
    for by, read, chosen in ((LINEAR, linear.read, penalty), (NEIGHBOURS, votes, np.nan)):
        yield {**known, "by": by, "penalty": chosen}, read.argmax(1) == numbers


# Columns about outliers are null if fewer images than this have outliers.
LEAST_IMAGES = 10
_RESAMPLED_TOKENS = f"difference{RESAMPLED}"
GROUPS = ALL, OTHERS, OUTLIERS = range(3)


def merge_probe_tokens(parts: Parts, threshold: float, resamples: int, seed: int) -> pd.DataFrame:
    found, squares = [], []
    for rows in probed_vectors_by_cut_point(parts.tables, [TOKEN]):
        targets = {
            POSITION: rows[["row", "column"]].to_numpy(np.float64),
            PIXELS: np.stack(rows["pixels"].to_list()).astype(np.float64),
        }
        for target, values in targets.items():
            known, each = _read_target(rows, values, rows["norm"].to_numpy() > threshold)
            found.append({"index": rows["index"].iloc[0], "target": target, **known})
            squares.append(each)
    of_images = np.stack(squares, axis=1)
    images, *shape = of_images.shape
    resampled = bootstrap_image_means(of_images.reshape(images, -1), resamples, seed)
    shares = _columns_of_r2(of_images.mean(0), resampled.reshape(-1, *shape))
    few = (of_images[:, :, OUTLIERS, 1] > 0).sum(0) < LEAST_IMAGES
    for name in ("r2_outliers", "difference", "difference_low", "difference_high"):
        shares[name][few] = np.nan
    lists = zip(few, shares.pop(_RESAMPLED_TOKENS), strict=True)
    table = pd.DataFrame(found).assign(images=images, **shares)
    table[_RESAMPLED_TOKENS] = [None if none else each for none, each in lists]
    return parts.cut_points.merge(table, on="index", validate="one_to_many")


def _read_target(
    rows: pd.DataFrame, targets: Array, outlier: Array
) -> tuple[dict[str, Any], Array]:
    """Return columns of the table, and sums (N, 3, 2) of squared errors and squared deviations.

    The axes of the sums are images, the groups of tokens in GROUPS, and errors before deviations.
    """
    numbers, image = np.unique(rows["image"], return_inverse=True)
    images = len(numbers)
    # Scale tokens to one length, as normalization layers do: else errors would grow with length.
    vectors = scale_to_unit_length(np.stack(rows["vector"].to_list()))
    found = read_linearly(
        vectors,
        targets,
        folds_of(images)[image],
        lambda found, targets: -float(np.square(found - targets).sum()),
    )
    squares = np.stack([np.square(each - targets).sum(1) for each in (found.read, found.unseen)])
    groups = np.stack([np.ones(len(image), bool), ~outlier, outlier])
    of_images = np.zeros((images, 3, 2))
    np.add.at(of_images, image, (groups[:, None] * squares).transpose(2, 0, 1))
    penalty = float(np.median(found.penalties))
    return {"tokens": len(image), "outliers": int(outlier.sum()), "penalty": penalty}, of_images


def _columns_of_r2(squares: Array, resampled: Array) -> dict[str, Array]:
    """Return the columns about r2 from `squares` (K, 3, 2) and `resampled` (R, K, 3, 2).

    Both hold means over images of the sums that `_read_target` returns, for each of K pairs of cut
    point and target; R is the number of resamples.
    """
    shares, others = (1 - ratio(each[..., 0], each[..., 1]) for each in (squares, resampled))
    # If no resample has outliers, NumPy warns that the interval is NaN.
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
        _RESAMPLED_TOKENS: differences[:KEPT].T.astype(np.float32),
    }
