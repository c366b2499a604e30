"""Score the predictions of a model.

Scores are as the authors of the paper define them. A prediction is confident if its confidence is
above `CUTOFF`. A bin holds the predictions whose confidence is above its lower end, and at most its
higher end.
"""

import numpy as np
import pandas as pd

from vitscope.claims.intervals import known_share_interval
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import spread, spread_of

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
    bins = scores_by_confidence(predictions)
    share = bins["images"] / len(predictions)
    overconfidence = (bins["confidence"] - bins["accuracy"]) * share
    return {
        "accuracy": _share_of_true(right),
        "accuracy_90": _share_of_true(right[confident]),
        "nll": float(predictions["nll"].mean()),
        "unconfidence_90": _share_of_true(~confident[~right]),
        "iou": _iou_score(label, prediction, classes),
        "iou_90": _iou_score(label[confident], prediction[confident], classes),
        "frequency_90": _share_of_true(confident),
        "top5": _share_of_true(predictions["top5"].to_numpy()),
        "brier": float(predictions["brier"].mean()),
        "ece": float(overconfidence.abs().sum()),
        "signed_ece": float(overconfidence.sum()),
    }


def scores_by_confidence(predictions: pd.DataFrame) -> pd.DataFrame:
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


def calibration_scores(predictions: pd.DataFrame, resamples: int, seed: int) -> dict[str, float]:
    """Return the bootstrap interval of the ECE, and the ECE that a calibrated network would have.

    The calibrated network is simulated: the probability that a prediction is right equals its
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


def _iou_score(label: Array, prediction: Array, classes: int) -> float:
    """Return the intersection over union, averaged over the classes that occur as labels."""
    labelled = np.bincount(label, minlength=classes)
    predicted = np.bincount(prediction, minlength=classes)
    both = np.bincount(label[label == prediction], minlength=classes)
    occurs = labelled > 0
    ratios = both[occurs] / (labelled + predicted - both)[occurs]
    return float(ratios.mean()) if len(ratios) else np.nan


# The minimum number of images in a bin of confidence that is drawn.
FEWEST = 10


def with_accuracy_intervals(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the bins with enough images, with the 95 % interval of their accuracy."""
    bins = bins[bins["images"] >= FEWEST]
    shares = zip(bins["accuracy"], bins["images"], strict=True)
    found = [known_share_interval(share, int(images)) for share, images in shares]
    low, high = zip(*found, strict=True) if found else ((), ())
    return bins.assign(ci_low=list(low), ci_high=list(high))


def accuracy_changes(clean: Array, disturbed: Array, resamples: int, seed: int) -> pd.DataFrame:
    """Return a row for each disturbance: the accuracy without and with it, and the change.

    `clean` (N,) says for each image whether its class is found. `disturbed` (N, K) says the same
    for each image and disturbance or, if disturbances are drawn several times, has the share of
    draws in which the class is found. The interval is for the difference on the same images.
    """
    changes = 100 * (disturbed.astype(np.float64) - clean.astype(np.float64)[:, None])
    return pd.DataFrame(
        {
            "clean_accuracy": clean.mean(dtype=np.float64),
            "accuracy": disturbed.mean(axis=0, dtype=np.float64),
            "change": changes.mean(axis=0),
            **spread(changes, resamples, seed).columns("change"),
        }
    )
