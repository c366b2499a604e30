"""Reading from vectors: against scikit-learn, and least squares as they are defined."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vitscope.measures.probe import reading
from vitscope.measures.probe.measure import FOLDS
from vitscope.measures.probe.reading import (
    PENALTIES,
    TEMPERATURE,
    Ridge,
    by_cut_point,
    folds_of,
    moments_of,
    read_linearly,
    unit,
    votes_of_neighbours,
)

IMAGES, CHANNELS, CLASSES = 150, 12, 4
DRAWN = np.random.default_rng(0)
LABELS = DRAWN.integers(CLASSES, size=IMAGES)
TARGETS = np.eye(CLASSES)[LABELS]
# Classes that can be read, in channels of very different means and scales.
VECTORS = DRAWN.normal(size=(IMAGES, CHANNELS)) + DRAWN.normal(size=(CLASSES, CHANNELS))[LABELS]
VECTORS = VECTORS * np.logspace(-3, 3, CHANNELS) + np.logspace(3, -3, CHANNELS)
FOLDS_OF = folds_of(IMAGES)


def theirs(vectors: np.ndarray, targets: np.ndarray, penalty: float):
    """Ridge regression by scikit-learn, whose penalty is of all rows."""
    model = make_pipeline(StandardScaler(), TheirRidge(penalty * len(vectors), solver="svd"))
    return model.fit(vectors, targets)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_ridge_is_that_of_scikit_learn(penalty: float) -> None:
    # Without what does not vary, which tells nothing.
    vectors = np.column_stack([VECTORS, np.full(IMAGES, 7.1)])
    fitted, shown = slice(100), slice(100, None)
    found = Ridge(moments_of(vectors[fitted], TARGETS[fitted])).predict(vectors[shown], penalty)
    expected = theirs(VECTORS[fitted], TARGETS[fitted], penalty).predict(VECTORS[shown])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_moments_merge() -> None:
    whole = Ridge(moments_of(VECTORS, TARGETS))
    parts = [
        moments_of(VECTORS[rows], TARGETS[rows]) for rows in np.split(np.arange(IMAGES), [9, 70])
    ]
    merged = Ridge(parts[0] + parts[1] + parts[2])
    for penalty in PENALTIES:
        both = [fitted.predict(VECTORS, penalty) for fitted in (whole, merged)]
        np.testing.assert_allclose(*both, rtol=0, atol=1e-9)


def accuracy(found: np.ndarray, targets: np.ndarray) -> float:
    return float((found.argmax(1) == targets.argmax(1)).mean())


def test_each_fold_is_read_by_the_others() -> None:
    """The same in a plain loop, with scikit-learn."""
    read = read_linearly(VECTORS, TARGETS, FOLDS_OF, accuracy)
    expected, unseen, penalties = np.empty(TARGETS.shape), np.empty(TARGETS.shape), []
    for fold in range(FOLDS):
        trial = (fold + 1) % FOLDS
        mine, held = fold == FOLDS_OF, trial == FOLDS_OF
        chosen = ~mine & ~held
        models = [theirs(VECTORS[chosen], TARGETS[chosen], penalty) for penalty in PENALTIES]
        scores = [accuracy(model.predict(VECTORS[held]), TARGETS[held]) for model in models]
        penalties.append(max(p for p, s in zip(PENALTIES, scores, strict=True) if s == max(scores)))
        fitted = theirs(VECTORS[~mine], TARGETS[~mine], penalties[-1])
        expected[mine], unseen[mine] = fitted.predict(VECTORS[mine]), TARGETS[~mine].mean(0)
    assert read.penalties == penalties
    np.testing.assert_allclose(read.read, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(read.unseen, unseen, rtol=0, atol=1e-12)
    assert accuracy(read.read, TARGETS) > 0.5


@pytest.mark.parametrize("neighbours", [1, 7, 1000])
def test_votes_are_those_of_scikit_learn(neighbours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "AT_ONCE", 11)
    vectors = VECTORS / np.abs(VECTORS).mean(0)
    votes = votes_of_neighbours(vectors, TARGETS, FOLDS_OF, neighbours)
    for fold in range(FOLDS):
        mine = fold == FOLDS_OF
        model = KNeighborsClassifier(
            min(neighbours, (~mine).sum()), metric="cosine", algorithm="brute",
            weights=lambda distances: np.exp((1 - distances) / TEMPERATURE),
        ).fit(vectors[~mine], LABELS[~mine])  # fmt: skip
        shares = votes[mine] / votes[mine].sum(1, keepdims=True)
        np.testing.assert_allclose(shares, model.predict_proba(vectors[mine]), rtol=0, atol=1e-6)


def test_of_vectors_that_are_alike_the_first_vote() -> None:
    # As a class token before the first block, but for what rounding makes of products with it.
    vectors = np.full((IMAGES, 3), [0.1, 1e6, 3])
    votes = votes_of_neighbours(vectors + 1e-9 * VECTORS[:, :3], TARGETS, FOLDS_OF, 7)
    for fold in range(FOLDS):
        first = np.flatnonzero(fold != FOLDS_OF)[:7]
        expected = np.exp(1 / TEMPERATURE) * TARGETS[first].sum(0)
        for found in votes[fold == FOLDS_OF]:
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_does_not_vary_is_not_read() -> None:
    vectors = np.full((IMAGES, 3), [0.1, 1e6, 0])
    read = read_linearly(vectors, TARGETS, FOLDS_OF, accuracy)
    np.testing.assert_allclose(read.read, read.unseen, rtol=0, atol=1e-9)


def test_folds_are_of_one_size_and_in_no_order() -> None:
    folds = folds_of(1003)
    assert np.ptp(np.bincount(folds)) <= 1
    # Labels that come in turn are in all folds.
    table = pd.crosstab(np.arange(1003) % 5, folds)
    assert table.to_numpy().min() > 20


def test_unit_vectors() -> None:
    np.testing.assert_allclose(unit(np.array([[3.0, 4], [0, 0]])), [[0.6, 0.8], [0, 0]])


def test_parts_come_cut_point_by_cut_point() -> None:
    def rows(first: int) -> pd.DataFrame:
        grid = [(i, of, n) for i in (0, 10, 2) for of in "ba" for n in (first + 1, first)]
        return pd.DataFrame(grid, columns=["index", "of", "image"]).assign(token=0)

    found = [*by_cut_point(map(rows, (2, 0)), "a")]
    assert [table["index"].unique().tolist() for table in found] == [[0], [2], [10]]
    assert all(table["image"].tolist() == [0, 1, 2, 3] for table in found)
