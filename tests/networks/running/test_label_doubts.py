from math import log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from torch import nn

from tests.helpers.splits import SWAPPED, built, shapes, write_folder
from vitscope.data.split import Split
from vitscope.networks.running.prediction_doubts import (
    RISK,
    SMALL_SKILL,
    chance,
    doubts_about_predictions,
    find_swapped_predictions,
    is_chance,
    is_surely_above,
    prediction_skill,
    warn_about_predictions,
)
from vitscope.networks.running.predictions import predict
from vitscope.scopes.bundled import bundled

Array = np.ndarray


def answers(table: list[list[int]]) -> tuple[Array, Array, int]:
    """Return labels and predictions of a confusion matrix, a row for each label; and its size."""
    pairs = [
        (label, named)
        for label, row in enumerate(table)
        for named, images in enumerate(row)
        for _ in range(images)
    ]
    labels, predictions = np.array(pairs).T
    return labels, predictions, len(table)


def drawn(
    generator: np.random.Generator, images: int, shares: list[float], right: float
) -> tuple[Array, Array, int]:
    """Draw labels of some shares and predictions that are right by more than chance."""
    labels = generator.choice(len(shares), images, p=shares)
    guesses = generator.choice(len(shares), images, p=shares)
    return labels, np.where(generator.random(images) < right, labels, guesses), len(shares)


def test_of_two_classes_the_skill_is_that_of_youden() -> None:
    labels, predictions, classes = answers([[45, 15], [10, 30]])
    # The sum of the products of shares.
    assert chance(labels, predictions) == pytest.approx(0.6 * 0.55 + 0.4 * 0.45, abs=1e-15)
    found, bound = prediction_skill(labels, predictions, classes)
    sensitivity, specificity = 45 / 60, 30 / 40
    assert found == pytest.approx(sensitivity + specificity - 1, abs=1e-15)
    # Hoeffding: scores lie between -0.6 and 0.6.
    margin = 1.2 * sqrt(log(100) / 200)
    assert bound == pytest.approx(found + margin / (1 - 0.6**2 - 0.4**2), abs=1e-15)


def test_the_skill_in_closed_form() -> None:
    assert prediction_skill(*answers([[7, 0, 0], [0, 2, 0], [0, 0, 1]]))[0] == pytest.approx(
        1, abs=1e-15
    )
    # One answer to all, and answers that have nothing to do with the label.
    assert prediction_skill(*answers([[7, 0], [3, 0]]))[0] == pytest.approx(0, abs=1e-15)
    assert prediction_skill(*answers([[6, 2, 4], [3, 1, 2], [0, 0, 0]]))[0] == pytest.approx(
        0, abs=1e-15
    )
    # Two classes that are each taken for the other.
    assert prediction_skill(*answers([[0, 5], [5, 0]]))[0] == pytest.approx(-1, abs=1e-15)


CHANCE = [
    # Images of one class tell of no skill.
    ([[0, 500], [0, 0]], False),
    ([[500, 0], [0, 0]], False),
    # One answer to every image is chance, also where most images are of that class.
    ([[90, 0, 0], [90, 0, 0], [90, 0, 0]], True),
    ([[1700, 0], [300, 0]], True),
    # These leave it open: few are of the other class.
    ([[170, 0], [30, 0]], False),
    # Two classes that are swapped are noticed on a dozen images.
    ([[0, 6], [6, 0]], True),
    ([[0, 2], [2, 0]], False),
]


@pytest.mark.parametrize(("table", "expected"), CHANCE)
def test_what_is_no_better_than_chance(table: list[list[int]], expected: bool) -> None:
    assert is_chance(*answers(table)) == expected
    assert np.isnan(prediction_skill(*answers(table))[0]) == (sum(map(any, table)) == 1)


@pytest.mark.parametrize(("expected", "count"), [(0.5, 40), (0.1, 200), (0.02, 1000), (0.9, 30)])
def test_the_bound_is_never_below_what_is_exact(expected: float, count: int) -> None:
    for found in range(count + 1):
        exact = stats.binom.sf(found - 1, count, expected)
        if is_surely_above(found / count, expected, count, RISK):
            assert exact < RISK
        elif found / count > expected:
            # And loses no more than the factor that Chernoff's bound is known to lose.
            assert exact > RISK / (2 * sqrt(2 * count))


def test_where_all_are_so_the_bound_is_exact() -> None:
    assert not is_surely_above(1.0, 0.5, 6, 2.0**-6)
    assert is_surely_above(1.0, 0.5, 7, 2.0**-6)
    assert not is_surely_above(1.0, 1.0, 1000, RISK)
    assert is_surely_above(0.1, 0.0, 1, RISK)


def test_a_rare_network_that_is_just_above_chance_is_not_doubted() -> None:
    labels = np.repeat(np.arange(1000), 5)
    predictions = (labels + 1) % 1000
    assert is_chance(labels, predictions, 1000)
    predictions[::25] = labels[::25]
    assert (labels == predictions).mean() == 0.04
    assert not is_chance(labels, predictions, 1000)


SHARES = {
    "two": [0.5, 0.5],
    "uneven": [0.85, 0.15],
    "ten": [0.1] * 10,
    "few of many": [0.25] * 4 + [0.0] * 96,
}


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("images", [1, 3, 8, 20, 60, 250])
def test_small_samples_do_not_cry_wolf(shares: list[float], images: int) -> None:
    """A network whose skill is just enough is doubted less often than the risk."""
    generator = np.random.default_rng(images)
    draws = [drawn(generator, images, shares, SMALL_SKILL) for _ in range(2000)]
    assert np.mean([is_chance(*draw) for draw in draws]) <= RISK


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("images", [1, 5, 20, 100])
def test_no_class_is_outdone_by_another_that_is_named_as_often(classes: int, images: int) -> None:
    """Each class is named for half of its images, and the next one for the other half."""
    generator = np.random.default_rng(images)
    labels = np.repeat(np.arange(classes), images)

    def doubted_without_a_reason() -> bool:
        wrong = generator.random(len(labels)) < 0.5
        return bool(find_swapped_predictions(labels, (labels + wrong) % classes, classes))

    assert np.mean([doubted_without_a_reason() for _ in range(1000)]) <= RISK


@pytest.mark.parametrize(
    ("shares", "images"), [(SHARES["two"], 250), (SHARES["ten"], 100)], ids=["two", "ten"]
)
def test_labels_of_other_images_are_noticed(shares: list[float], images: int) -> None:
    generator = np.random.default_rng(0)
    found = [is_chance(*drawn(generator, images, shares, 0)) for _ in range(300)]
    assert np.mean(found) > 0.7


def test_the_least_number_of_images_that_tells() -> None:
    """Of n images that are all named as another, the chance is 2^-n; pairs share the risk."""

    def swapped(images: int) -> list[int]:
        table = [[images, 0, 0], [0, 0, images], [0, images, 0]]
        return [each.label for each in find_swapped_predictions(*answers(table))]

    # Of three classes there are six pairs: 2^-n < 0.01 / 6 from n = 10 on.
    assert swapped(9) == []
    assert swapped(10) == [1, 2]


def test_a_class_that_is_often_taken_for_another_is_not_doubted() -> None:
    """Dogs that pass for wolves are right now and then, and wolves are wolves."""
    assert find_swapped_predictions(*answers([[30, 70, 0], [5, 95, 0], [0, 0, 50]])) == []
    # Where wolves pass for dogs as well, the names may be swapped.
    found = find_swapped_predictions(*answers([[30, 70, 0], [65, 30, 5], [0, 0, 50]]))
    assert [each.label for each in found] == [0, 1]


def test_a_class_that_is_hardly_ever_right_is_doubted_though_the_other_is_right() -> None:
    (found,) = find_swapped_predictions(*answers([[5, 60, 5], [2, 90, 0], [0, 0, 50]]))
    assert found == (0, 70, 5, 1, 60)
    # The other may have no images.
    table = np.zeros((20, 20), int)
    np.fill_diagonal(table[:5, :5], 30)
    table[2, 2], table[2, 11] = 1, 29
    (found,) = find_swapped_predictions(*answers(table.tolist()))
    assert found == (2, 30, 1, 11, 29)


def test_sentences() -> None:
    labels, predictions, _ = answers([[0, 20, 0], [20, 0, 0], [0, 0, 20]])
    assert doubts_about_predictions(labels, predictions, ["ant", "b\nee", "cat"]) == [
        "of 20 images of class 0 (ant) it is right about 0, and takes 20 for class 1 (b\\nee); "
        "of 20 images of class 1 (b\\nee) it is right about 0, and takes 20 for class 0 (ant)"
    ]
    labels = np.repeat(np.arange(8), 40)
    (accuracy, places) = doubts_about_predictions(labels, (labels + 1) % 8, [*"abcdefgh"])
    assert accuracy == (
        "it is right about 0 of 320 images (0.0 %), which is no better than chance, 12.5 %"
    )
    assert places.count("; ") == 5
    assert places.endswith("; so it is with 3 classes more")
    assert doubts_about_predictions(labels, labels, [*"abcdefgh"]) == []


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return shapes(tmp_path_factory.mktemp("shapes") / "test", 400)


@pytest.fixture(scope="module")
def resnet() -> nn.Module:
    return bundled("resnet", 1)["model"]


def doubted(resnet: nn.Module, split: Split) -> tuple[float, list[str]]:
    """Return the accuracy of the network, and what is doubted of it."""
    batches = split.batches(range(len(split)), 100, [0.5] * 3, [0.25] * 3)
    table = predict(resnet, batches, np.array(split.labels))
    labels, found = (table[key].to_numpy() for key in ("label", "prediction"))
    return (labels == found).mean(), doubts_about_predictions(labels, found, split.classes)


def test_folders_in_the_order_of_outputs(
    resnet: nn.Module, original: Split, tmp_path: Path
) -> None:
    source = write_folder(original, tmp_path / "right")
    right = built(tmp_path / "named", source, class_names=original.classes)
    accuracy, found = doubted(resnet, right)
    assert accuracy > 0.9
    assert found == []
    # In the order of their names, the same folders are other classes.
    accuracy, found = doubted(resnet, built(tmp_path / "sorted", source))
    assert accuracy < 0.3
    assert len(found) == 1 or "no better than chance" in found[0]
    assert "it is right about" in found[-1]


def test_warnings_are_said_and_returned(original: Split) -> None:
    table = pd.DataFrame({"label": np.repeat(np.arange(10), 20)})
    said: list[str] = []
    wrong = table.assign(prediction=(table["label"] + 1) % 10)
    found = warn_about_predictions("vit", original, wrong, said.append)
    assert said == [f"vitscope: warning: {warning}" for warning in found]
    assert found[0].startswith("vit on the split 'test' of data.mine: it is right about 0 of 200 ")
    assert "class 0 (striped disk) it is right about 0, and takes 20 for class 1" in found[1]
    right = table.assign(prediction=table["label"])
    assert warn_about_predictions("vit", original, right, said.append) == []


def test_two_swapped_folders(resnet: nn.Module, original: Split, tmp_path: Path) -> None:
    source = write_folder(original, tmp_path / "swapped", SWAPPED)
    swapped = built(tmp_path / "split", source, class_names=original.classes)
    accuracy, found = doubted(resnet, swapped)
    assert 0.6 < accuracy < 0.85
    (sentence,) = found
    assert "of class 3 (meshed triangle) it is right about" in sentence
    assert "of class 4 (rippled square) it is right about" in sentence
    assert sentence.count(";") == 1
