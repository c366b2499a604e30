from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from tests.helpers.cue_conflict import kappa
from tests.helpers.refusals import refusal
from tests.helpers.splits import built, shapes
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.classification.shape_texture import (
    CONSISTENCY,
    PEOPLE,
    classification_consistency,
    count_classifications_by_cue,
    cue_classes,
    letters_of,
    measure_shape_texture,
    read_people,
    shape_bias_of_classification,
)
from vitscope.measures.given import OnPredictions
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
    whole = count_classifications_by_cue(letters(model)).iloc[0]
    images = 1200 * (10 if model == PEOPLE else 1)
    assert whole["shape_accuracy"] * images == pytest.approx(shape, abs=1e-6)
    assert whole["texture_accuracy"] * images == pytest.approx(texture, abs=1e-6)
    assert whole["shape_bias"] == shape / (shape + texture)
    if model in PUBLISHED:
        assert round(100 * whole["shape_bias"], 1) == PUBLISHED[model]


def test_decisions_by_shape() -> None:
    (row,) = letters("ResNet-50")
    counted = count_classifications_by_cue(row[None]).iloc[1:].reset_index(drop=True)
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
    table = classification_consistency(np.isin(row, ["s", "+"]), people, shape, names, 200, 0)
    said = TABLE.loc[TABLE["model"] == PEOPLE, "decisions"].tolist()
    assert table["class_name"].tolist() == ["all", *names]
    for number, found in enumerate(table["consistency"]):
        of = slice(80 * (number - 1), 80 * number) if number else slice(None)
        expected = np.mean([kappa("".join(row[of]), each[of]) for each in said])
        assert found == pytest.approx(expected, abs=1e-12)
    low, value, high = table.loc[0, ["consistency_low", "consistency", "consistency_high"]]
    assert low < value < high < low + 0.06
    # A person agrees with people, and with themselves in full.
    alike = classification_consistency(people[0], people, shape, names, 200, 0)["consistency"][0]
    assert alike == pytest.approx(0.1 + 0.9 * TABLE["consistency"][0], abs=1e-6)


def test_one_who_is_always_right_beside_another_such_has_no_consistency() -> None:
    right = np.ones(6, bool)
    table = classification_consistency(right, right[None], np.zeros(6, int), ["disk"], 50, 0)
    assert table[["consistency", "consistency_low", "consistency_high"]].isna().all(axis=None)


CLASSES = ["disk", "ring", "star", "heart"]


def drawn(images: int, shape_share: float, texture_share: float, seed: int = 0) -> tuple[Any, ...]:
    """Draw cues that conflict, and decisions for shape, texture or neither."""
    generator = np.random.default_rng(seed)
    shape = generator.integers(4, size=images)
    texture = (shape + generator.integers(1, 4, images)) % 4
    neither = np.array([next(iter({0, 1, 2, 3} - set(pair))) for pair in np.c_[shape, texture]])
    number = generator.random(images)
    chosen = [number < shape_share, number < shape_share + texture_share]
    return np.select(chosen, [shape, texture], neither), shape, texture


def measured(prediction: Any, shape: Any, texture: Any, resamples: int = 200) -> pd.DataFrame:
    arrays = (np.asarray(values) for values in (prediction, shape, texture))
    return shape_bias_of_classification(*arrays, CLASSES, resamples, 0)


def test_by_hand() -> None:
    shape = [0, 0, 0, 0, 2, 2, 3, 1]
    texture = [1, 2, 3, 1, 0, 1, 3, 1]
    prediction = [0, 2, 2, 0, 0, 3, 3, 1]
    table = measured(prediction, shape, texture).set_index("class_name")
    assert table.index.tolist() == ["all", "disk", "star"]
    assert table["images"].tolist() == [6, 4, 2]
    assert table["shape_accuracy"].tolist() == [2 / 6, 2 / 4, 0]
    assert table["texture_accuracy"].tolist() == [2 / 6, 1 / 4, 1 / 2]
    assert table["shape_bias"].tolist() == pytest.approx([1 / 2, 2 / 3, 0])


def test_images_without_a_conflict_play_no_part() -> None:
    arrays = drawn(100, 0.3, 0.4)
    agreeing = np.full(50, 2)
    more = [np.concatenate([values, agreeing]) for values in arrays]
    pd.testing.assert_frame_equal(measured(*more), measured(*arrays), check_exact=True)


@settings(max_examples=40)
@given(st.integers(1, 30), st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_bounds(images: int, shape_share: float, texture_share: float, seed: int) -> None:
    table = measured(*drawn(images, shape_share, texture_share * (1 - shape_share), seed), 100)
    known = table.dropna(subset=["ci_low"])
    assert known["ci_low"].between(0, known["ci_high"]).all()
    assert known["ci_high"].between(known["ci_low"], 1).all()
    assert (table["shape_accuracy"] + table["texture_accuracy"] <= 1 + 1e-12).all()
    assert table.loc[1:, "images"].sum() == table.loc[0, "images"]
    decides = table["shape_accuracy"] + table["texture_accuracy"] > 0
    assert (table["shape_bias"].notna() == decides).all()


def test_where_nothing_is_decided_there_is_no_bias(tmp_path: Path) -> None:
    table = measured([3, 3, 3], [0, 0, 1], [1, 2, 2])
    columns = {"model": "vit", **dict.fromkeys(CONSISTENCY, np.nan)}
    find_table("shape_texture").write(table.assign(**columns), tmp_path / "table")
    back = find_table("shape_texture").read(tmp_path / "table")
    assert back["shape_accuracy"].eq(0).all()
    assert back[["shape_bias", "ci_low", "ci_high"]].isna().all(axis=None)
    single = measured([0], [0], [1])
    assert single["shape_bias"].tolist() == [1, 1]
    assert single[["ci_low", "ci_high"]].isna().all(axis=None)


def test_the_row_of_all_images_keeps_what_its_resamples_say() -> None:
    prediction, shape, texture = drawn(40, 0.2, 0.3)
    table = measured(prediction, shape, texture, 500)
    weights = np.random.default_rng(0).multinomial(40, np.full(40, 1 / 40), size=500)
    by_shape, by_texture = (weights @ (prediction == cue) for cue in (shape, texture))
    expected = by_shape / (by_shape + by_texture)
    ends = table.loc[0, ["ci_low", "ci_high"]].tolist()
    assert ends == pytest.approx(np.percentile(expected, [2.5, 97.5]), rel=1e-12)
    every, *classes = table["shape_bias_resampled"]
    np.testing.assert_allclose(every, expected[:400], rtol=1e-6)
    assert all(each is None for each in classes)


def test_resamples_without_a_decision_are_left_out() -> None:
    table = measured([0, 3, 3], [0, 0, 0], [1, 1, 1])
    assert table["shape_bias"].eq(1).all()
    # All resamples are equal: Wilson's interval of one decision.
    wilson = binomtest(1, 1).proportion_ci(method="wilson")
    assert table["ci_low"].tolist() == pytest.approx([wilson.low] * 2)
    assert table["ci_high"].tolist() == [1, 1]


def test_no_conflict_at_all_is_refused() -> None:
    with pytest.raises(VitscopeError, match="of one class in all images"):
        measured([0, 1], [0, 1], [0, 1])


def test_a_job_compares_predictions_with_the_cues(tmp_path: Path) -> None:
    images = shapes(tmp_path / "split", 120, "conflict")
    rows = np.arange(5, 100)
    prediction = np.random.default_rng(0).integers(10, size=len(rows))
    predictions = pd.DataFrame({"image": rows, "prediction": prediction})
    table = measure_shape_texture(OnPredictions("vit", predictions, images), 100, 3)
    shape, texture = images.column("shape")[5:100], images.column("texture")[5:100]
    np.testing.assert_array_equal(shape, images.labels[5:100])
    assert (shape != texture).all()
    expected = shape_bias_of_classification(prediction, shape, texture, images.classes, 100, 3)
    expected = expected.assign(model="vit", **dict.fromkeys(CONSISTENCY, np.nan))
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    find_table("shape_texture").write(table, tmp_path / "table.parquet")


def test_images_that_do_not_say_their_cues_are_refused(tmp_path: Path) -> None:
    pixels = np.zeros((4, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(4))
    source = {"kind": "npz", "path": str(tmp_path / "images.npz")}
    images = built(tmp_path / "split", source, classes=4)
    assert refusal(cue_classes, images, [0, 1]) == (
        "data.mine: the images of the split 'test' do not say their 'shape', so that no shape "
        "bias can be measured: name a split that does in analysis.shape_texture.split."
    )
