"""Class separation and NC1, against sums over all pairs, and networks whose classes are known."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.refusals import refusal
from vitscope.measures.bootstrap import bootstrap_counts
from vitscope.measures.given import Parts
from vitscope.measures.probe.separation import (
    class_separation,
    merge_class_separation,
    variability_collapse,
)

SIZES = (7, 3, 5)
NUMBERS = np.repeat(np.arange(3), SIZES)


@pytest.fixture
def vectors() -> np.ndarray:
    generator = np.random.default_rng(0)
    return generator.normal(size=(sum(SIZES), 4)) + generator.normal(size=(3, 4))[NUMBERS]


def separation_over_pairs(vectors: np.ndarray, numbers: np.ndarray) -> float:
    """The formula of Kornblith et al. 2021, over all pairs of two images."""
    names = [tuple(each) for each in vectors]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    distinct = {each: {names[i] for i in np.flatnonzero(numbers == each)} for each in range(3)}
    classes = [each for each, found in distinct.items() if len(found) > 1]
    within = overall = 0.0
    for one in classes:
        for other in classes:
            a, b = np.flatnonzero(numbers == one), np.flatnonzero(numbers == other)
            pairs = [(i, j) for i in a for j in b if names[i] != names[j]]
            distance = np.mean([1 - unit[i] @ unit[j] for i, j in pairs])
            overall += distance / len(classes) ** 2
            within += (one == other) * distance / len(classes)
    return 1 - within / overall


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_separation_is_that_of_all_pairs(vectors: np.ndarray) -> None:
    (found,) = class_separation(unit(vectors), NUMBERS, np.ones((1, len(NUMBERS))))
    assert found == pytest.approx(separation_over_pairs(vectors, NUMBERS), rel=1e-12)


def test_of_a_resample_it_is_that_of_the_images_in_it(vectors: np.ndarray) -> None:
    (counts,) = bootstrap_counts(len(NUMBERS), 20, seed=3)
    # The second class is missing in one.
    counts[0, NUMBERS == 1] = 0
    found = class_separation(unit(vectors), NUMBERS, counts)
    for value, times in zip(found, counts.astype(int), strict=True):
        drawn = np.repeat(np.arange(len(NUMBERS)), times)
        expected = separation_over_pairs(vectors[drawn], NUMBERS[drawn])
        assert value == pytest.approx(expected, rel=1e-10)


def test_points_are_apart_and_one_cloud_is_not() -> None:
    points = np.eye(3)[NUMBERS]
    assert class_separation(points, NUMBERS, np.ones((1, 15)))[0] == pytest.approx(1, abs=1e-12)
    assert variability_collapse(points, NUMBERS) == pytest.approx(0, abs=1e-12)
    # In the mean over many draws of one cloud nothing is apart, however few the images are.
    generator, numbers = np.random.default_rng(0), np.repeat([0, 1], 3)
    draws = [unit(generator.normal(size=(6, 5))) for _ in range(4000)]
    found = [class_separation(each, numbers, np.ones((1, 6)))[0] for each in draws]
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(len(found)) + 0.01


def test_where_all_vectors_are_alike_there_is_neither() -> None:
    same = np.tile(unit(np.ones((1, 4))), (15, 1))
    assert np.isnan(class_separation(same, NUMBERS, np.ones((1, 15)))[0])
    assert np.isnan(variability_collapse(same, NUMBERS))


def test_nc1_in_closed_form() -> None:
    """Two classes far apart along the first axis, whose spread along another does not count."""
    far, spread = 3.0, 0.5
    around = np.array([[spread, 2], [-spread, -2], [spread, -2], [-spread, 2]])
    vectors = np.vstack([around - np.array([far, 0]), around + np.array([far, 0])])
    expected = spread**2 / far**2 / 2
    assert variability_collapse(vectors, np.repeat([0, 1], 4)) == pytest.approx(expected, rel=1e-12)


def test_nc1_is_the_sum_over_directions_of_the_means(vectors: np.ndarray) -> None:
    means = np.stack([vectors[each == NUMBERS].mean(0) for each in range(3)])
    apart = means - means.mean(0)
    _, sizes, axes = np.linalg.svd(apart, full_matrices=False)
    about = (vectors - means[NUMBERS]) @ axes[:2].T
    expected = (np.square(about).mean(0) / (np.square(sizes[:2]) / 3)).sum() / 3
    assert variability_collapse(vectors, NUMBERS) == pytest.approx(expected, rel=1e-9)


def parts_with(vectors: np.ndarray, labels: np.ndarray) -> Parts:
    rows = {"index": 0, "image": np.arange(len(labels)), "label": labels, "of": "mean", "token": 0}
    table = pd.DataFrame(rows).assign(vector=list(vectors.astype(np.float32)))
    halves = table[::2], table[1::2]
    return Parts("net", iter(halves), pd.DataFrame({"index": [0], "name": ["stem"]}))


def test_the_table(vectors: np.ndarray) -> None:
    table = merge_class_separation(parts_with(vectors, 5 + NUMBERS), resamples=200, seed=0)
    (row,) = table.to_dict("records")
    assert (row["name"], row["images"], row["classes"], row["of"]) == ("stem", 15, 3, "mean")
    single = vectors.astype(np.float32).astype(float)
    assert row["separation"] == pytest.approx(separation_over_pairs(single, NUMBERS), rel=1e-12)
    assert row["nc1"] == pytest.approx(variability_collapse(single, NUMBERS), rel=1e-12)
    low, high = np.percentile(row["separation_resampled"], (2.5, 97.5))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), rel=1e-6)
    assert row["ci_low"] < row["separation"] < row["ci_high"]


SINGLE = np.where(NUMBERS == 0, 0, np.arange(15))


@pytest.mark.parametrize("labels", [np.where(NUMBERS == 1, -1, NUMBERS), 0 * NUMBERS, SINGLE])
def test_images_without_classes_to_tell_apart_are_refused(
    vectors: np.ndarray, labels: np.ndarray
) -> None:
    said = refusal(merge_class_separation, parts_with(vectors, labels), resamples=100, seed=0)
    assert said.startswith("class_separation: found images without labels, or fewer than two class")


def test_a_class_of_one_image_is_left_out(vectors: np.ndarray) -> None:
    labels = np.where(np.arange(15) == 14, 9, NUMBERS)
    table = merge_class_separation(parts_with(vectors, labels), resamples=100, seed=0)
    (row,) = table.to_dict("records")
    expected = separation_over_pairs(vectors[:14].astype(np.float32).astype(float), NUMBERS[:14])
    assert row["separation"] == pytest.approx(expected, rel=1e-12)
    assert (row["classes"], np.isnan(row["nc1"])) == (4, True)
