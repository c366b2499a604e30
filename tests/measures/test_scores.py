"""Accuracy and calibration against the authors' formulae, torchmetrics, and by hand."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.helpers.predictions import predictions
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.scores import BINS, calibration_scores, scores_by_confidence, scores_of
from vitscope.networks.building.timm_import import declare_torchvision_operators
from vitscope.networks.running.predictions import score_predictions

SCORES = (
    *("accuracy", "accuracy_90", "nll", "unconfidence_90", "iou", "iou_90", "frequency_90"),
    *("top5", "brier", "ece", "signed_ece"),
)


def drawn(
    images: int, classes: int, seed: int, scale: float, skill: float = 2
) -> tuple[Tensor, Tensor]:
    """Draw logits that point to the label the more the larger `skill` is."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (images,), generator=generator)
    noise = torch.randn(images, classes, generator=generator)
    return scale * (noise + skill * torch.nn.functional.one_hot(labels, classes)), labels


def predictions_of(logits: Tensor, labels: Tensor) -> pd.DataFrame:
    return pd.DataFrame(
        {key: value.numpy() for key, value in score_predictions(logits, labels).items()}
    )


# The authors' way: a confusion matrix per batch, cut-off and bin. Small numbers keep their
# denominators from zero, and confidence is summed over [low, high), accuracy over (low, high].

SMALL = 1e-7


def confusion(labels: np.ndarray, prediction: np.ndarray, classes: int) -> np.ndarray:
    matrix = np.zeros((classes, classes))
    np.add.at(matrix, (labels, prediction), 1)
    return matrix


def their_iou(matrix: np.ndarray) -> float:
    both = np.diag(matrix)
    either = matrix.sum(0) + matrix.sum(1) - both
    weights = matrix.sum(1) > 0
    return float((both / (either + SMALL) * weights).sum() / (weights.sum() + SMALL))


def by_confusion_matrices(logits: Tensor, labels: Tensor, batch: int = 32) -> dict[str, float]:
    classes = logits.shape[1]
    edges = np.linspace(0, 1, 11)
    whole = np.zeros((classes, classes))
    confident = np.zeros((classes, classes))
    of_bins = np.zeros((10, classes, classes))
    confidences = np.zeros(10)
    sums = {"nll": 0.0, "brier": 0.0, "top5": 0.0}
    for some, truth in zip(logits.split(batch), labels.numpy().reshape(-1, batch), strict=True):
        probability = torch.softmax(some.double(), 1).numpy()
        prediction, confidence = probability.argmax(1), probability.max(1)
        whole += confusion(truth, prediction, classes)
        sure = confidence > 0.9
        confident += confusion(truth[sure], prediction[sure], classes)
        for index, (low, high) in enumerate(pairwise(edges)):
            inside = (confidence > low) & (confidence <= high)
            of_bins[index] += confusion(truth[inside], prediction[inside], classes)
            confidences[index] += confidence[(confidence >= low) & (confidence < high)].sum()
        rows = np.arange(len(truth))
        sums["nll"] -= np.log(probability[rows, truth]).sum()
        sums["brier"] += ((probability - np.eye(classes)[truth]) ** 2).sum()
        best = np.argsort(-probability, axis=1)[:, :5]
        sums["top5"] += (best == truth[:, None]).any(1).sum()
    count = whole.sum()
    images = of_bins.sum((1, 2))
    accuracies = np.trace(of_bins, axis1=1, axis2=2) / (images + SMALL)
    gaps = confidences / (images + SMALL) - accuracies
    wrong = count - np.trace(whole)
    return {
        "accuracy": np.trace(whole) / (count + SMALL),
        "accuracy_90": np.trace(confident) / (confident.sum() + SMALL),
        "unconfidence_90": (wrong - (confident.sum() - np.trace(confident))) / (wrong + SMALL),
        "iou": their_iou(whole),
        "iou_90": their_iou(confident),
        "frequency_90": confident.sum() / (count + SMALL),
        "ece": (images * np.abs(gaps)).sum() / count,
        "signed_ece": (images * gaps).sum() / count,
        **{name: value / count for name, value in sums.items()},
    }


@settings(max_examples=40)
@given(st.integers(2, 30), st.integers(0, 99), st.floats(0.3, 3), st.integers(1, 6))
def test_scores_of_the_authors(classes: int, seed: int, scale: float, batches: int) -> None:
    logits, labels = drawn(32 * batches, classes, seed, scale)
    ours = scores_of(predictions_of(logits, labels), classes)
    theirs = by_confusion_matrices(logits, labels)
    assert ours.keys() == theirs.keys() == set(SCORES)
    for name, value in ours.items():
        # Where nothing defines a score they have 0, and the table null.
        assert (0 if np.isnan(value) else value) == pytest.approx(theirs[name], abs=1e-6), name


@pytest.mark.parametrize(("classes", "scale"), [(2, 1.0), (10, 3.0)])
def test_scores_of_torchmetrics(classes: int, scale: float) -> None:
    declare_torchvision_operators()
    from torchmetrics.functional import classification as metrics

    # No confidence lies on the edge of a bin, which torchmetrics has in the upper one.
    logits, labels = drawn(2000, classes, 1, scale)
    assert len(labels.unique()) == classes
    probability = torch.softmax(logits.double(), 1)
    predictions = predictions_of(logits, labels)
    sure = probability.amax(1) > 0.9
    at_stake = {"preds": probability, "target": labels, "num_classes": classes}
    confident = {"preds": probability[sure], "target": labels[sure], "num_classes": classes}
    ours = scores_of(predictions, classes)

    def check(name: str, metric: Callable[..., Tensor], **arguments: Any) -> None:
        assert ours[name] == pytest.approx(metric(**arguments).item(), abs=1e-6), name

    check("accuracy", metrics.multiclass_accuracy, **at_stake, average="micro")
    check("iou", metrics.multiclass_jaccard_index, **at_stake, average="macro")
    check("ece", metrics.multiclass_calibration_error, **at_stake, n_bins=BINS, norm="l1")
    if sure.any():
        check("accuracy_90", metrics.multiclass_accuracy, **confident, average="micro")
    top = min(5, classes)
    check("top5", metrics.multiclass_accuracy, **at_stake, average="micro", top_k=top)
    nll = torch.nn.functional.cross_entropy(logits.double(), labels).item()
    assert ours["nll"] == pytest.approx(nll, rel=1e-12)


HAND = predictions(
    label=[0, 0, 0, 1, 1, 2, 2, 2],
    prediction=[0, 0, 1, 1, 0, 2, 2, 3],
    confidence=[0.95, 0.6, 0.92, 1.0, 0.3, 0.91, 0.9, 0.55],
    nll=[1, 2, 3, 4, 5, 6, 7, 8],
    brier=[0.5] * 4 + [1] * 4,
    top5=[True] * 6 + [False] * 2,
)


def test_by_hand() -> None:
    scores = scores_of(HAND, 5)
    assert tuple(scores) == SCORES
    assert scores == pytest.approx(
        {
            "accuracy": 5 / 8,
            # confident are the images 0, 2, 3 and 5; not the one of 0.9
            "accuracy_90": 3 / 4,
            "nll": 4.5,
            # wrong are the images 2, 4 and 7
            "unconfidence_90": 2 / 3,
            # classes 0: 2 of 4, 1: 1 of 3, 2: 2 of 3; 3 and 4 are no labels
            "iou": (2 / 4 + 1 / 3 + 2 / 3) / 3,
            # of the confident 0: 1 of 2, 1: 1 of 2, 2: 1 of 1
            "iou_90": (1 / 2 + 1 / 2 + 1) / 3,
            "frequency_90": 4 / 8,
            "top5": 6 / 8,
            "brier": 0.75,
            # bins of 0.3: 0 right; 0.55 and 0.6: 1 of 2; 0.9: 1 of 1; the four confident: 3
            "ece": (0.3 + abs(1.15 - 1) + abs(0.9 - 1) + abs(3.78 - 3)) / 8,
            "signed_ece": (0.3 + 0.15 - 0.1 + 0.78) / 8,
        },
        rel=1e-12,
    )


def test_bins_by_hand() -> None:
    bins = scores_by_confidence(HAND)
    assert bins["bin"].tolist() == list(range(10))
    assert bins["low"].tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert bins["high"].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    assert bins["images"].tolist() == [0, 0, 1, 0, 0, 2, 0, 0, 1, 4]
    filled = [2, 5, 8, 9]
    assert bins["accuracy"].iloc[filled].tolist() == [0, 0.5, 1, 0.75]
    assert bins["confidence"].iloc[filled].tolist() == pytest.approx([0.3, 0.575, 0.9, 0.945])
    empty = bins.drop(index=filled)
    assert empty[["accuracy", "confidence"]].isna().all(axis=None)


@pytest.mark.parametrize("edge", [step / 10 for step in range(1, 11)])
def test_a_bin_holds_its_upper_end(edge: float) -> None:
    above = min(np.nextafter(edge, 2), 1)
    bins = scores_by_confidence(
        predictions(label=[0, 0], prediction=[0, 0], confidence=[edge, above])
    )
    position = round(10 * edge) - 1
    assert bins["images"].iloc[position] == (2 if edge == 1 else 1)
    assert bins["images"].sum() == 2


def test_a_model_that_knows_nothing() -> None:
    scores = scores_of(predictions_of(torch.zeros(40, 10), torch.arange(40) % 10), 10)
    assert np.isnan([scores.pop(name) for name in ("accuracy_90", "iou_90")]).all()
    expected = {"accuracy": 0.1, "nll": np.log(10), "unconfidence_90": 1, "iou": 0.01}
    expected |= {"frequency_90": 0, "top5": 1, "brier": 0.9, "ece": 0, "signed_ece": 0}
    assert scores == pytest.approx(expected, abs=1e-12)


MANY = predictions_of(*drawn(300, 12, 5, 1.5))


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_the_order_of_images_and_the_names_of_classes_do_not_matter(random: Any) -> None:
    order, names = list(range(300)), list(range(12))
    random.shuffle(order)
    random.shuffle(names)
    renamed = np.array(names)
    other = MANY.iloc[order].assign(
        label=lambda frame: renamed[frame["label"]],
        prediction=lambda frame: renamed[frame["prediction"]],
    )
    assert scores_of(other, 12) == pytest.approx(scores_of(MANY, 12), rel=1e-12)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(2, 12), st.integers(0, 99), st.floats(0.01, 20))
def test_scores_keep_their_bounds(images: int, classes: int, seed: int, scale: float) -> None:
    scores = scores_of(predictions_of(*drawn(images, classes, seed, scale, 1)), classes)
    assert scores["accuracy"] <= scores["top5"] <= 1
    assert abs(scores["signed_ece"]) <= scores["ece"] + 1e-15
    assert 0 <= scores["brier"] <= 2
    for name in set(SCORES) - {"nll", "brier", "signed_ece"}:
        assert np.isnan(scores[name]) or 0 <= scores[name] <= 1, name


def test_what_nothing_defines_is_null_in_the_table(tmp_path: Path) -> None:
    unsure = predictions(label=[0, 0], prediction=[0, 0], confidence=[0.6, 0.6])
    row = {"model": "vit", "images": 2} | scores_of(unsure, 2) | calibration_scores(unsure, 50, 0)
    find_table("classification").write(pd.DataFrame([row]), tmp_path / "table")
    back = find_table("classification").read(tmp_path / "table").iloc[0]
    assert back.index[back.isna()].tolist() == ["accuracy_90", "unconfidence_90", "iou_90"]
    find_table("reliability").write(
        scores_by_confidence(unsure).assign(model="vit"), tmp_path / "bins"
    )
    bins = find_table("reliability").read(tmp_path / "bins")
    assert bins["accuracy"].isna().sum() == bins["confidence"].isna().sum() == 9


def test_no_predictions_are_refused() -> None:
    with pytest.raises(VitscopeError, match="no predictions to score"):
        scores_of(HAND.iloc[:0], 5)


@pytest.mark.parametrize("label", [-1, 5])
def test_a_label_outside_the_classes_is_refused(label: int) -> None:
    with pytest.raises(VitscopeError, match="1 of 8 images have a label outside the 5 classes"):
        scores_of(HAND.assign(label=[label, *HAND["label"][1:]]), 5)


def of_confidences(confidence: np.ndarray, right: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"label": 0, "prediction": 1 - right, "confidence": confidence})


def test_a_calibrated_network_has_the_ece_that_it_is_said_to_have() -> None:
    generator = np.random.default_rng(0)
    confidence = generator.uniform(0.3, 1, 300)
    found = calibration_scores(of_confidences(confidence, np.ones(300, int)), 10, 1)[
        "ece_calibrated"
    ]
    networks = [
        bins_by_hand(confidence, (generator.random(300) < confidence).astype(int))
        for _ in range(400)
    ]
    # Both are means of hundreds of draws.
    error = np.std(networks) * np.sqrt(1 / 200 + 1 / 400)
    assert found == pytest.approx(np.mean(networks), abs=4 * error)
    # And that is what halves if images are four times as many.
    more = calibration_scores(of_confidences(np.tile(confidence, 4), np.ones(1200, int)), 10, 1)
    assert more["ece_calibrated"] == pytest.approx(found / 2, rel=0.1)


def bins_by_hand(confidence: np.ndarray, right: np.ndarray) -> float:
    bins = np.ceil(confidence * BINS).astype(int)
    gaps = [abs((confidence - right)[bins == each].sum()) for each in np.unique(bins)]
    return sum(gaps) / len(right)


def test_the_interval_of_the_ece_is_that_of_its_resamples() -> None:
    generator = np.random.default_rng(2)
    confidence = generator.uniform(0.1, 1, 150)
    right = (generator.random(150) < confidence - 0.1).astype(int)
    found = calibration_scores(of_confidences(confidence, right), 60, 7)
    counts = np.random.default_rng(7).multinomial(150, np.full(150, 1 / 150), size=60)
    resampled = [
        bins_by_hand(np.repeat(confidence, count), np.repeat(right, count)) for count in counts
    ]
    ends = np.percentile(resampled, [2.5, 97.5])
    assert (found["ece_low"], found["ece_high"]) == pytest.approx(tuple(ends), rel=1e-9)


def test_sure_and_right_predictions_leave_nothing_to_chance() -> None:
    found = calibration_scores(of_confidences(np.ones(9), np.ones(9, int)), 20, 0)
    assert found == {"ece_low": 0, "ece_high": 0, "ece_calibrated": 0}
