"""Score the predictions of a model, and classify images that are disturbed.

Scores are as the authors define them. A prediction is confident if its confidence is above
`CUTOFF`. A bin holds the predictions with a confidence above its lower end, up to its higher end.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vitscope.data.split import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.per_image import spread_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

CUTOFF = 0.9
BINS = 10
_EDGES = np.arange(BINS + 1) / BINS
# The number of draws of labels for a calibrated network: enough for its mean ECE to be exact to a
# few thousandths.
DRAWS = 200


def scores_of(predictions: pd.DataFrame, classes: int) -> dict[str, float]:
    """Return the scores of some predictions, by their names in the table `classification`."""
    if predictions.empty:
        raise VitscopeError("There are no predictions to score: measure at least one image.")
    outside = int((~predictions["label"].between(0, classes - 1)).sum())
    if outside:
        raise VitscopeError(
            f"{outside} of {len(predictions)} images have a label outside the {classes} classes "
            f"of the data set: correct `classes` of the data set, or its labels."
        )
    label, prediction = predictions["label"].to_numpy(), predictions["prediction"].to_numpy()
    right = label == prediction
    confident = predictions["confidence"].to_numpy() > CUTOFF
    bins = reliability(predictions)
    share = bins["images"] / len(predictions)
    overconfidence = (bins["confidence"] - bins["accuracy"]) * share
    return {
        "accuracy": _share_of_true(right),
        "accuracy_90": _share_of_true(right[confident]),
        "nll": float(predictions["nll"].mean()),
        "unconfidence_90": _share_of_true(~confident[~right]),
        "iou": _mean_iou(label, prediction, classes),
        "iou_90": _mean_iou(label[confident], prediction[confident], classes),
        "frequency_90": _share_of_true(confident),
        "top5": _share_of_true(predictions["top5"].to_numpy()),
        "brier": float(predictions["brier"].mean()),
        "ece": float(overconfidence.abs().sum()),
        "signed_ece": float(overconfidence.sum()),
    }


def reliability(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the number, accuracy and mean confidence of the images in each bin of confidence."""
    confidence, right, bin_of = _confidence_bins(predictions)
    images = np.bincount(bin_of, minlength=BINS)
    counted = np.where(images > 0, images, np.nan)
    return pd.DataFrame(
        {
            "bin": np.arange(BINS),
            "low": _EDGES[:-1],
            "high": _EDGES[1:],
            "images": images,
            "accuracy": np.bincount(bin_of, right, BINS) / counted,
            "confidence": np.bincount(bin_of, confidence, BINS) / counted,
        }
    )


def calibration(predictions: pd.DataFrame, resamples: int, seed: int) -> dict[str, float]:
    """Return the interval of the ECE over images, and the ECE that a calibrated network would have.

    The calibrated network is simulated: each prediction is right with the probability that is its
    confidence, so that the mean ECE is due to chance alone.
    """
    confidence, right, bin_of = _confidence_bins(predictions)
    gaps = (confidence - right)[:, None] * (bin_of[:, None] == np.arange(BINS))
    ends = spread_of(lambda means: np.abs(means).sum(axis=1, keepdims=True), gaps, resamples, seed)
    drawn, generator = [], np.random.default_rng(seed)
    for _ in range(DRAWS):
        gap = confidence - (generator.random(len(confidence)) < confidence)
        drawn.append(np.abs(np.bincount(bin_of, gap)).sum() / len(gap))
    low, high = float(ends.low[0]), float(ends.high[0])
    return {"ece_low": low, "ece_high": high, "ece_calibrated": float(np.mean(drawn))}


def _confidence_bins(predictions: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Return the confidence of each prediction, whether it is right, and its bin."""
    right = predictions["label"].to_numpy() == predictions["prediction"].to_numpy()
    confidence = predictions["confidence"].to_numpy()
    return confidence, right, np.searchsorted(_EDGES, confidence) - 1


def _share_of_true(true: Array) -> float:
    return float(true.mean()) if len(true) else np.nan


def _mean_iou(label: Array, prediction: Array, classes: int) -> float:
    """Average the intersection over union over the classes that occur as labels."""
    labelled = np.bincount(label, minlength=classes)
    predicted = np.bincount(prediction, minlength=classes)
    both = np.bincount(label[label == prediction], minlength=classes)
    occurs = labelled > 0
    ratios = both[occurs] / (labelled + predicted - both)[occurs]
    return float(ratios.mean()) if len(ratios) else np.nan


# A function of images and their rows in the split, which yields for each draw the images under
# each disturbance.
Disturb = Callable[["Tensor", Sequence[int]], Iterable[Iterable["Tensor"]]]


def classify_disturbed(given: OnModel, chosen: Given, disturb: Disturb) -> tuple[Array, Array]:
    """Classify images of a split clean and disturbed; return what `shares_found` does.

    `chosen` has the number of images and the seed that draws them.
    """
    rows = rows_to_classify(given.images, chosen["images"], chosen["seed"])
    labels = known_labels(given.images, rows)
    return shares_found(given.network, given.batches(rows), rows, labels, disturb, given.device)


def shares_found(
    model: "nn.Module",
    batches: Iterable["Tensor"],
    rows: Sequence[int],
    labels: Array,
    disturb: Disturb,
    device: "torch.device | None" = None,
) -> tuple[Array, Array]:
    """Return whether the class of each clean image is found, (N,), and how often when disturbed.

    The second array, (N, K), has the share of draws in which the class is found under each of K
    disturbances. `batches` are the normalized images of `rows` of the split.
    """
    import torch

    model = model.eval().to(device)
    clean, shares, first = [], [], 0
    with torch.inference_mode():
        for batch in batches:
            here = slice(first, first + len(batch))
            images, truth = batch.to(device), labels[here]
            clean.append(_is_class_found(model, images, truth))
            draws = disturb(images, rows[here])
            found = [[_is_class_found(model, each, truth) for each in draw] for draw in draws]
            shares.append(np.mean(found, axis=0).T)
            first += len(batch)
    if first != len(rows):
        raise ValueError(f"got {first} images, expected {len(rows)}")
    return np.concatenate(clean), np.concatenate(shares)


def _is_class_found(model: "nn.Module", images: "Tensor", labels: Array) -> Array:
    logits = model(images).cpu().numpy()
    if not np.isfinite(logits).all():
        raise VitscopeError(
            f"The {type(model).__name__} gives logits that are not finite: check its checkpoint, "
            f"the mean and std of its data, and the settings of what disturbs the images."
        )
    found: Array = logits.argmax(axis=1) == labels
    return found
