"""What people and networks were published to go by, counted again, and who errs as people do."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.cue_conflict import kappa
from vitscope.measures.classification.compute import (
    PEOPLE,
    consistencies,
    count_decisions,
    letters_of,
    read_people,
    say_shape,
)
from vitscope.package_data import PUBLISHED_POINTS

FILE = "cue_conflict.csv"
TABLE = pd.read_csv(PUBLISHED_POINTS / FILE)
# Decisions for shape and for texture: the authors' repository, counted file by file.
COUNTS = {
    "ResNet-50": (162, 572),
    "AlexNet": (283, 376),
    "GoogLeNet": (228, 503),
    "VGG-16": (130, 625),
    "AlexNet of torchvision": (182, 537),
    "VGG-16 of torchvision": (84, 828),
    "SqueezeNet1.1": (133, 597),
    "DenseNet-121": (163, 597),
    "ResNet-101": (180, 509),
    "ResNet-152": (196, 569),
    "ResNet-50, Stylized-ImageNet": (586, 141),
    PEOPLE: (9236, 398),
}
# As Geirhos et al. (2019) write them, in percent.
PUBLISHED = {"ResNet-50": 22.1, "AlexNet": 42.9, "GoogLeNet": 31.2, "VGG-16": 17.2, PEOPLE: 95.9}


def letters(model: str) -> np.ndarray:
    return letters_of(TABLE.loc[TABLE["model"] == model, "decisions"])


@pytest.mark.parametrize("model", COUNTS)
def test_decisions_to_the_count(model: str) -> None:
    shape, texture = COUNTS[model]
    whole = count_decisions(letters(model)).iloc[0]
    images = 1200 * (10 if model == PEOPLE else 1)
    assert whole["shape_accuracy"] * images == pytest.approx(shape, abs=1e-6)
    assert whole["texture_accuracy"] * images == pytest.approx(texture, abs=1e-6)
    assert whole["shape_bias"] == shape / (shape + texture)
    if model in PUBLISHED:
        assert round(100 * whole["shape_bias"], 1) == PUBLISHED[model]


def test_decisions_by_shape() -> None:
    (row,) = letters("ResNet-50")
    counted = count_decisions(row[None]).iloc[1:].reset_index(drop=True)
    for category in range(16):
        of_shape = row[80 * category : 80 * category + 80]
        assert np.isin(of_shape, ["s", "t", "o"]).sum() == 75
        shape, texture = ((of_shape == letter).sum() for letter in "st")
        assert counted["shape_bias"][category] == shape / (shape + texture)
        assert counted["texture_accuracy"][category] == pytest.approx(texture / 75)


def test_consistencies_that_are_published() -> None:
    """The mean over people is that of Geirhos et al. (2020) for these images, 0.331."""
    people = TABLE.loc[TABLE["model"] == PEOPLE, "decisions"].tolist()
    for model, said, consistency in TABLE.itertuples(index=False):
        others = [each for each in people if each != said]
        assert len(others) == 9 + (model != PEOPLE)
        expected = np.mean([kappa(said, each) for each in others])
        assert consistency == pytest.approx(expected, abs=1e-6)
    assert round(TABLE.loc[TABLE["model"] == PEOPLE, "consistency"].mean(), 3) == 0.331


def test_the_consistency_of_a_model_is_that_image_by_image() -> None:
    people, (row,) = read_people(FILE), letters("ResNet-50")
    shape = np.arange(1280) // 80
    names = [f"category {number}" for number in range(16)]
    table = consistencies(say_shape(row), people, shape, names, 200, 0)
    said = TABLE.loc[TABLE["model"] == PEOPLE, "decisions"].tolist()
    assert table["class_name"].tolist() == ["all", *names]
    for number, found in enumerate(table["consistency"]):
        of = slice(80 * (number - 1), 80 * number) if number else slice(None)
        expected = np.mean([kappa("".join(row[of]), each[of]) for each in said])
        assert found == pytest.approx(expected, abs=1e-12)
    low, value, high = table.loc[0, ["consistency_low", "consistency", "consistency_high"]]
    assert low < value < high < low + 0.06
    # A person agrees with people, and with themselves in full.
    alike = consistencies(people[0], people, shape, names, 200, 0)["consistency"][0]
    assert alike == pytest.approx(0.1 + 0.9 * TABLE["consistency"][0], abs=1e-6)


def test_one_who_is_always_right_beside_another_such_has_no_consistency() -> None:
    right = np.ones(6, bool)
    table = consistencies(right, right[None], np.zeros(6, int), ["disk"], 50, 0)
    assert table[["consistency", "consistency_low", "consistency_high"]].isna().all(axis=None)
