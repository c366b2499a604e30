"""Read targets from vectors: ridge regression in closed form, and votes of neighbours, by folds.

Ridge regression takes no more than moments of vectors and targets, which are made once for each
fold: those of any folds together are their sums.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.probe.measure import FOLDS

Numbers = npt.NDArray[np.int64]

# What is added to the variance of each channel, which is 1: the choice of penalties.
PENALTIES = tuple(10.0**power for power in range(-6, 3))
# Of the mean square of a channel: where its variance is no more than this, it is rounding.
ALIKE = float(np.finfo(np.float32).eps) ** 2
# What cosines are divided by in votes, and how many vectors vote or are voted on at once.
TEMPERATURE, AT_ONCE = 0.07, 1024
# Of a cosine; what is behind them is rounding.
DIGITS = 9


def folds_of(images: int) -> Numbers:
    """Deal images to folds of one size, at random; the number of an image says which is its."""
    return np.random.default_rng(0).permutation(images) % FOLDS


def by_cut_point(tables: Iterable[pd.DataFrame], of: Iterable[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of some vectors of all parts at each cut point, in the order of images.

    One part is in memory, and then one cut point: the others wait on disk.
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
    """All that is fitted of vectors and targets: their number, their means, and sums about these.

    Those of vectors that were in two groups are the sum of two: about means, few digits are lost.
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
    """Return the moments of vectors (N, C) with targets (N, K), of one or more."""
    centre, mean = vectors.mean(0, dtype=np.float64), targets.mean(0, dtype=np.float64)
    about = vectors - centre
    return Moments(len(vectors), centre, mean, about.T @ about, about.T @ (targets - mean))


class Ridge:
    """Ridge regression with an intercept, of channels scaled to unit variance: for any penalty."""

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
        """Return what is read from vectors, (N, K)."""
        weights = self._axes @ (self._along / (self._values + penalty)[:, None])
        return (vectors - self.centre) @ (weights * self._scale[:, None]) + self.mean


@dataclass(frozen=True, eq=False)
class Read:
    """What is read from vectors in folds, what is said without looking, and the penalties."""

    read: Array
    unseen: Array
    penalties: list[float]


def read_linearly(
    vectors: Array, targets: Array, folds: Numbers, score: Callable[[Array, Array], float]
) -> Read:
    """Read targets (N, K) from vectors (N, C), those of each fold by the others.

    Of the penalties that one is taken which scores highest on the next fold, fitted without both;
    of several, the largest.
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


def unit(vectors: Array) -> Array:
    """Return vectors of length 1; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)


def votes_of_neighbours(vectors: Array, targets: Array, folds: Numbers, neighbours: int) -> Array:
    """Return the votes of the nearest vectors of other folds, by cosine: (N, K)."""
    scaled = unit(vectors)
    votes = np.empty(targets.shape)
    for fold in range(FOLDS):
        others = np.flatnonzero(folds != fold)
        count = min(neighbours, len(others))
        asking = np.flatnonzero(folds == fold)
        for rows in np.split(asking, range(AT_ONCE, len(asking), AT_ONCE)):
            cosines = scaled[rows] @ scaled[others].T
            # Of vectors that are as near, but for rounding, the first ones.
            near = cosines.round(DIGITS) - 10.0**-DIGITS / len(others) * np.arange(len(others))
            nearest = np.argpartition(-near, count - 1, axis=1)[:, :count]
            weights = np.exp(np.take_along_axis(cosines, nearest, 1) / TEMPERATURE)
            votes[rows] = np.einsum("nk,nkc->nc", weights, targets[others[nearest]])
    return votes
