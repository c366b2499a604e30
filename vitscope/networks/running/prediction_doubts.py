"""Doubt predictions that are no better than chance, or that name other classes in their place."""

from collections.abc import Iterator, Sequence
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import rel_entr

from vitscope.data.split import Split
from vitscope.errors import visible
from vitscope.progress import Say

Integers = npt.NDArray[np.int64]
# The largest probability of a false alarm in each of two checks: for an accuracy at the level of
# chance, and for swapped classes.
RISK = 0.01
# A useful network has more than this skill; 1 is perfect.
SMALL_SKILL = 0.25
# A class is hardly ever found if another class is predicted for its images this many times
# as often.
HARDLY = 10
SHOWN_CLASSES = 5


def doubts_about_predictions(
    labels: Integers, predictions: Integers, names: Sequence[str]
) -> list[str]:
    """Return sentences on why labels and outputs may not be in the same order."""
    found = []
    if is_chance(labels, predictions, len(names)):
        right, images = int((labels == predictions).sum()), len(labels)
        found.append(
            f"it is right about {right} of {images} images ({100 * right / images:.1f} %), which "
            f"is no better than chance, {100 * chance(labels, predictions):.1f} %"
        )
    if taken := find_swapped_predictions(labels, predictions, len(names)):
        found.append("; ".join(_swapped_predictions_in_words(taken, names)))
    return found


def prediction_skill(labels: Integers, predictions: Integers, classes: int) -> tuple[float, float]:
    """Return the skill (0 for chance, 1 for perfect) and an upper bound of it.

    If only one class occurs, they are NaN and infinity.
    """
    shares = np.bincount(labels, minlength=classes) / len(labels)
    there = shares[shares > 0]
    if len(there) < 2:
        return np.nan, inf
    scores = (labels == predictions) - shares[predictions]
    perfect = 1 - float(np.square(shares).sum())
    span = 1 + float(there.max() - there.min())
    margin = span * sqrt(log(1 / RISK) / (2 * len(labels)))
    mean = float(scores.mean())
    return mean / perfect, (mean + margin) / perfect


def is_chance(labels: Integers, predictions: Integers, classes: int) -> bool:
    _, bound = prediction_skill(labels, predictions, classes)
    accuracy = float((labels == predictions).mean())
    by_chance = chance(labels, predictions)
    return bound < SMALL_SKILL and not is_surely_above(accuracy, by_chance, len(labels), RISK)


def chance(labels: Integers, predictions: Integers) -> float:
    """Return the expected accuracy if the same predictions were assigned to images at random."""
    classes = 1 + max(labels.max(), predictions.max())
    shares = (np.bincount(each, minlength=classes) / len(each) for each in (labels, predictions))
    return float(np.dot(*shares))


def is_surely_above(share: float, expected: float, count: int, risk: float) -> bool:
    """Tell whether a share of `count` images is above `expected` at significance level `risk`."""
    if share <= expected:
        return False
    divergence = float(rel_entr(share, expected) + rel_entr(1 - share, 1 - expected))
    return count * divergence > log(1 / risk)


class Confusion(NamedTuple):
    """Counts the images of a class: all, those predicted `right`, and those `named` as `other`."""

    label: int
    images: int
    right: int
    other: int
    named: int


def find_swapped_predictions(
    labels: Integers, predictions: Integers, classes: int
) -> list[Confusion]:
    outdone = {each.label: each for each in _find_rival_predictions(labels, predictions, classes)}
    return [
        each
        for each in outdone.values()
        if HARDLY * each.right <= each.named or each.other in outdone
    ]


def _find_rival_predictions(
    labels: Integers, predictions: Integers, classes: int
) -> Iterator[Confusion]:
    """Yield classes for whose images one other class is predicted significantly more often."""
    present = np.unique(labels)
    risk = RISK / (len(present) * (classes - 1))
    for label in present.tolist():
        named = np.bincount(predictions[labels == label], minlength=classes)
        images, right = int(named.sum()), int(named[label])
        named[label] = -1
        other = int(named.argmax())
        either = right + int(named[other])
        if either and is_surely_above(int(named[other]) / either, 0.5, either, risk):
            yield Confusion(label, images, right, other, int(named[other]))


def _swapped_predictions_in_words(
    taken: Sequence[Confusion], names: Sequence[str]
) -> Iterator[str]:
    ordered = sorted(taken, key=lambda each: each.right - each.named)
    for each in ordered[:SHOWN_CLASSES]:
        yield visible(
            f"of {each.images} images of class {each.label} ({names[each.label]}) it is right "
            f"about {each.right}, and takes {each.named} for class {each.other} "
            f"({names[each.other]})"
        )
    if len(ordered) > SHOWN_CLASSES:
        yield f"so it is with {len(ordered) - SHOWN_CLASSES} classes more"


def warn_about_predictions(
    model: str, images: Split, predictions: pd.DataFrame, say: Say = print
) -> list[str]:
    where, columns = images.metadata, ("label", "prediction")
    labels, found = (predictions[name].to_numpy(np.int64) for name in columns)
    warnings = [
        f"{model} on the split '{where['split']}' of data.{where['dataset']}: {doubt}: compare the "
        f"numbers of the classes, which the record of the run has, with the order of the outputs "
        f"of the network (`class_names` and `class_index` of the data set), its checkpoint, and "
        f"`mean` and `std`."
        for doubt in doubts_about_predictions(labels, found, images.classes)
    ]
    for warning in warnings:
        say(f"vitscope: warning: {warning}")
    return warnings
