"""Reading from vectors: against scikit-learn, and least squares as they are defined."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.helpers.refusals import refusal
from vitscope.measures.bootstrap import bootstrap_image_means
from vitscope.measures.given import Parts
from vitscope.measures.probe import reading
from vitscope.measures.probe.measure import FOLDS, PROBE_PART
from vitscope.measures.probe.reading import (
    PENALTIES,
    TEMPERATURE,
    Ridge,
    folds_of,
    merge_probe,
    moments_of,
    probed_vectors_by_cut_point,
    read_by_neighbours,
    read_linearly,
    scale_to_unit_length,
)
from vitscope.measures.probe.reading import merge_probe_tokens as merge_tokens
from vitscope.networks.finding.cut_points import CUT_POINT

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
    rows = np.split(np.arange(IMAGES), [9, 70])
    one, other, third = (moments_of(VECTORS[each], TARGETS[each]) for each in rows)
    merged = Ridge(one + other + third)
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
    votes = read_by_neighbours(vectors, TARGETS, FOLDS_OF, neighbours)
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
    votes = read_by_neighbours(vectors + 1e-9 * VECTORS[:, :3], TARGETS, FOLDS_OF, 7)
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
    np.testing.assert_allclose(
        scale_to_unit_length(np.array([[3.0, 4], [0, 0]])), [[0.6, 0.8], [0, 0]]
    )


def test_parts_come_cut_point_by_cut_point() -> None:
    def rows(first: int) -> pd.DataFrame:
        grid = [(i, of, n) for i in (0, 10, 2) for of in "ba" for n in (first + 1, first)]
        return pd.DataFrame(grid, columns=["index", "of", "image"]).assign(token=0)

    found = [*probed_vectors_by_cut_point(map(rows, (2, 0)), "a")]
    assert [table["index"].unique().tolist() for table in found] == [[0], [2], [10]]
    assert all(table["image"].tolist() == [0, 1, 2, 3] for table in found)


MERGED_IMAGES, TOKENS, MERGED_CHANNELS = 60, 3, 5
KNOWN = {key: "net" if kind == "string" else 0 for key, (kind, _) in CUT_POINT.items()}
POINTS = pd.DataFrame({**KNOWN, "index": range(2)})
MERGED_LABELS = np.arange(MERGED_IMAGES) % 3
PREDICTED = np.where(np.arange(MERGED_IMAGES) < 45, MERGED_LABELS, (MERGED_LABELS + 1) % 3)


def rows(index: int, of: str, token: int, vectors: np.ndarray, **more) -> pd.DataFrame:
    known = {"index": index, "image": np.arange(MERGED_IMAGES)}
    known |= {"label": MERGED_LABELS, "predicted": PREDICTED}
    none = {"row": np.nan, "column": np.nan, "norm": np.nan, "pixels": [[]] * MERGED_IMAGES}
    return pd.DataFrame(known | none | {"of": of, "token": token, "vector": [*vectors]} | more)


def part() -> pd.DataFrame:
    """Means that tell classes at the second cut point; tokens that are linear in their place.

    The first token of each fourth image is an outlier, and points anywhere.
    """
    drawn = np.random.default_rng(0)
    classes = drawn.normal(size=(3, MERGED_CHANNELS))[MERGED_LABELS]
    noise = drawn.normal(size=(2, MERGED_IMAGES, MERGED_CHANNELS))
    tables = [rows(0, "mean", 0, noise[0]), rows(1, "mean", 0, 5 * classes + noise[1])]
    tables.append(rows(1, "prefix", 0, noise[0]))
    for index in range(2):
        for token in range(TOKENS):
            place, pixels = drawn.random((MERGED_IMAGES, 2)), drawn.normal(size=(MERGED_IMAGES, 3))
            vectors = np.column_stack([place, np.ones(MERGED_IMAGES), pixels[:, :2]])
            outlier = (np.arange(MERGED_IMAGES) % 4 == 0) & (token == 0) & (index == 1)
            vectors[outlier] = 9 * drawn.normal(size=(outlier.sum(), MERGED_CHANNELS))
            norm = np.where(outlier, 9.0, 1.0)
            more = {"row": place[:, 0], "column": place[:, 1], "norm": norm}
            tables.append(rows(index, "token", token, vectors, pixels=[*pixels], **more))
    return pd.concat(tables, ignore_index=True)[[*PROBE_PART.columns]]


def shards(whole: pd.DataFrame, size: int) -> list[pd.DataFrame]:
    return [shard for _, shard in whole.groupby(whole["image"] // size)]


def merged(function, tables: list[pd.DataFrame], **settings) -> pd.DataFrame:
    return function(Parts("net", iter(tables), POINTS), resamples=100, seed=0, **settings)


def test_classes() -> None:
    whole = part()
    table = merged(merge_probe, [whole], neighbours=4)
    assert table.groupby("index")["of"].unique().map(sorted).tolist() == [
        ["mean", "token"], ["mean", "prefix", "token"]
    ]  # fmt: skip
    assert set(table["chance"]) == {1 / 3}
    assert set(table["network"]) == {0.75}
    assert (table["penalty"].isna() == (table["by"] == "neighbours")).all()
    accuracy = table.set_index(["index", "of", "by"])["accuracy"]
    assert accuracy[1, "mean"].min() > 0.95
    assert accuracy.drop((1, "mean")).max() < 0.6
    means = np.stack(whole[(whole["index"] == 0) & (whole["of"] == "mean")]["vector"].to_list())
    votes = read_by_neighbours(means, np.eye(3)[MERGED_LABELS], folds_of(MERGED_IMAGES), 4)
    right = (votes.argmax(1) == MERGED_LABELS).astype(float)
    (row,) = table[(table["of"] == "mean") & (table["by"] == "neighbours")].to_dict("records")[:1]
    assert row["accuracy"] == right.mean()
    low, high = np.percentile(bootstrap_image_means(right[:, None], 100, 0), [2.5, 97.5])
    assert (row["ci_low"], row["ci_high"]) == (low, high)
    # Linear probes of means and prefixes are what claims are about.
    lists = table["accuracy_resampled"]
    assert (lists.notna() == (table["by"] == "linear") & (table["of"] != "token")).all()
    # So few resamples are all kept, in float32.
    kept = np.percentile(np.stack(lists.dropna().to_list()), [2.5, 97.5], axis=1).T
    ends = table.loc[lists.notna(), ["ci_low", "ci_high"]]
    np.testing.assert_allclose(kept, ends, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "settings"), [(merge_probe, {"neighbours": 4}), (merge_tokens, {"threshold": 3.0})]
)
def test_shards_make_no_difference(function, settings) -> None:
    whole = part()
    expected = merged(function, [whole], **settings)
    for tables in (shards(whole, 7), [*reversed(shards(whole, 20))]):
        found = merged(function, tables, **settings)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_a_network_without_classes_has_no_accuracy_of_its_own() -> None:
    table = merged(merge_probe, [part().assign(predicted=-1)], neighbours=4)
    assert table["network"].isna().all()


def test_images_without_labels_are_refused() -> None:
    whole = part()
    whole.loc[whole["image"] < 2, "label"] = -1
    assert refusal(merged, merge_probe, [whole], neighbours=4) == (
        "probe: 2 of 60 images have no label, so that no class can be read: use a source with "
        "labels."
    )
    # Places are read all the same.
    assert len(merged(merge_tokens, [whole], threshold=3.0)) == 4


def by_least_squares(rows: pd.DataFrame, targets: np.ndarray) -> np.ndarray:
    """Squared errors and deviations of each token, (N, 2), of regression without a penalty."""
    vectors = scale_to_unit_length(np.stack(rows["vector"].to_list()))
    ones = np.ones((len(vectors), 1))
    folds, found = folds_of(MERGED_IMAGES)[rows["image"]], np.empty((len(rows), 2))
    for fold in range(5):
        mine = folds == fold
        weights = np.linalg.lstsq(np.hstack([vectors, ones])[~mine], targets[~mine])[0]
        read = np.hstack([vectors, ones])[mine] @ weights
        found[mine, 0] = np.square(targets[mine] - read).sum(1)
        found[mine, 1] = np.square(targets[mine] - targets[~mine].mean(0)).sum(1)
    return found


def test_places_and_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitscope.measures.probe.reading.PENALTIES", (1e-12,))
    whole = part()
    table = merged(merge_tokens, [whole], threshold=3.0)
    counts = table[["images", "tokens"]].to_numpy().tolist()
    assert counts == [[MERGED_IMAGES, MERGED_IMAGES * TOKENS]] * 4
    assert table["outliers"].tolist() == [0, 0, 15, 15]
    for row in table.to_dict("records"):
        of_point = whole[(whole["index"] == row["index"]) & (whole["of"] == "token")]
        of_point = of_point.sort_values(["token", "image"])
        targets = {
            "position": of_point[["row", "column"]].to_numpy(),
            "pixels": np.stack(of_point["pixels"].to_list()),
        }[row["target"]]
        squares, outlier = by_least_squares(of_point, targets), of_point["norm"].to_numpy() > 3
        shares = [1 - each[0] / each[1] for each in (
            squares.sum(0), squares[outlier].sum(0), squares[~outlier].sum(0))
            if each[1]]  # fmt: skip
        assert row["r2"] == pytest.approx(shares[0], abs=1e-6)
        assert row["ci_low"] < row["r2"] < row["ci_high"]
        if row["index"] == 1:
            assert row["r2_outliers"] == pytest.approx(shares[1], abs=1e-6)
            assert row["difference"] == pytest.approx(shares[2] - shares[1], abs=1e-6)
            assert row["difference_low"] < row["difference"] < row["difference_high"]
            # So few resamples are all kept, in float32.
            ends = np.percentile(row["difference_resampled"], [2.5, 97.5])
            assert ends == pytest.approx([row["difference_low"], row["difference_high"]], rel=1e-6)
        else:
            assert row["difference_resampled"] is None
            assert np.isnan([row["r2_outliers"], row["difference"], row["difference_low"]]).all()


def test_few_outliers_say_nothing_and_one_position_is_none() -> None:
    whole = part().assign(row=0.5, column=0.5)
    whole.loc[(whole["image"] > 30) & (whole["norm"] > 3), "norm"] = 1.0
    table = merged(merge_tokens, [whole], threshold=3.0)
    assert table.loc[table["index"] == 1, "outliers"].tolist() == [8, 8]
    assert table[["r2_outliers", "difference", "difference_high"]].isna().all(axis=None)
    assert table["r2"].isna().tolist() == [True, False] * 2
