"""The shape bias against closed forms and scipy's bootstrap, and its cues from an artefact."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap

from tests.helpers.splits import built, shapes
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.classification.compute import (
    CONSISTENCY,
    cues,
    measure_shape_texture,
    shape_biases,
)
from vitscope.measures.given import OnPredictions

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
    return shape_biases(*arrays, CLASSES, resamples, 0)


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


def test_the_interval_is_that_of_scipy() -> None:
    prediction, shape, texture = drawn(400, 0.05, 0.1)
    row = measured(prediction, shape, texture, 20_000).iloc[0]
    hits = [(prediction == cue).astype(float) for cue in (shape, texture)]
    theirs = bootstrap(
        hits,
        lambda one, other, axis: one.mean(axis) / (one.mean(axis) + other.mean(axis)),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=20_000,
        rng=1,
    )
    ours = row[["ci_low", "ci_high"]].to_numpy(float)
    # The ends of an interval from 20,000 resamples are known to about 0.02 standard errors.
    tolerance = 0.08 * theirs.standard_error
    assert np.abs(ours - np.array(theirs.confidence_interval)).max() < tolerance


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
    every, *classes = measured(prediction, shape, texture, 500)["shape_bias_resampled"]
    weights = np.random.default_rng(0).multinomial(40, np.full(40, 1 / 40), size=64)
    by_shape, by_texture = (weights @ (prediction == cue) for cue in (shape, texture))
    expected = (by_shape / (by_shape + by_texture)).astype(np.float32)
    np.testing.assert_allclose(every[:64], expected, rtol=1e-6)
    assert len(every) == 400
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


# The cues of an artefact


def test_a_job_compares_predictions_with_the_cues(tmp_path: Path) -> None:
    images = shapes(tmp_path / "split", 120, "conflict")
    rows = np.arange(5, 100)
    prediction = np.random.default_rng(0).integers(10, size=len(rows))
    predictions = pd.DataFrame({"image": rows, "prediction": prediction})
    table = measure_shape_texture(OnPredictions("vit", predictions, images), 100, 3)
    shape, texture = images.column("shape")[5:100], images.column("texture")[5:100]
    np.testing.assert_array_equal(shape, images.labels[5:100])
    assert (shape != texture).all()
    expected = shape_biases(prediction, shape, texture, images.classes, 100, 3)
    expected = expected.assign(model="vit", **dict.fromkeys(CONSISTENCY, np.nan))
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    find_table("shape_texture").write(table, tmp_path / "table.parquet")


def test_images_that_do_not_say_their_cues_are_refused(tmp_path: Path) -> None:
    pixels = np.zeros((4, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(4))
    source = {"kind": "npz", "path": str(tmp_path / "images.npz")}
    images = built(tmp_path / "split", source, classes=4)
    with pytest.raises(VitscopeError) as caught:
        cues(images, [0, 1])
    assert str(caught.value) == (
        "data.mine: the images of the split 'test' do not say their 'shape', so that no shape "
        "bias can be measured: name a split that does in analysis.shape_texture.split."
    )
