"""Whether labels mean what the outputs of a network mean, as far as its predictions tell.

Two things are looked for, and each is doubted with confidence alone: of networks that are of use,
on data sets whose labels are right, one in a hundred is doubted at most, however few the images.

**Accuracy no better than chance.** With p the share of each class among the labels, an image that
is predicted as class k scores 1 - p_k if k is its label, and -p_k if not. The mean score is 0 for
predictions that have nothing to do with the labels, whatever their shares, and 1 - sum p^2 where
all are right; over that it is the *skill* (of two classes, Youden's J). Scores of images are
independent and lie in a known range, so that Hoeffding's inequality bounds the skill. Accuracy is
doubted where the skill is below a quarter with confidence, unless it is above that of chance with
confidence, by Chernoff's bound. Images of one class alone tell of no skill, and are not doubted.

**A class that another takes the place of.** In a network that was taught the labels, no class is
named for the images of another more often than their own. Of the images of a class that are taken
for it or for one other, Chernoff's bound tells where the other has more than half, at a risk that
all pairs of classes share. Such a class is doubted if it is hardly ever right, or if what takes its
place is outdone in the same way: then the two, or more, may have each other's names.
"""

from collections.abc import Iterator, Sequence
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.data.split import Split
from vitscope.errors import visible
from vitscope.progress import Say

Integers = npt.NDArray[np.int64]

# How often each of the two may be doubted without a reason.
RISK = 0.01
# A network that is of use has more than this skill, of 1.
SMALL_SKILL = 0.25
# A class is hardly ever right if another is named so many times as often.
HARDLY = 10
# How many classes are named one by one.
SHOWN = 5


def doubts(labels: Integers, predictions: Integers, names: Sequence[str]) -> list[str]:
    """Return sentences that say why labels and outputs may not be in the same order, if any.

    `names` are the names of all classes, by their numbers.
    """
    found = []
    if is_chance(labels, predictions, len(names)):
        found.append(_no_better_than_chance(labels, predictions))
    if taken := find_swapped_classes(labels, predictions, len(names)):
        found.append("; ".join(_sentences(taken, names)))
    return found


def skill(labels: Integers, predictions: Integers, classes: int) -> tuple[float, float]:
    """Return the skill, and what it is below with confidence; NaN where there is but one class."""
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
    """Tell whether predictions are right no more often than by chance."""
    _, bound = skill(labels, predictions, classes)
    accuracy = float((labels == predictions).mean())
    by_chance = chance(labels, predictions)
    return bound < SMALL_SKILL and not is_surely_above(accuracy, by_chance, len(labels), RISK)


def chance(labels: Integers, predictions: Integers) -> float:
    """Return the accuracy of predictions of the same shares that do not look at the images."""
    classes = 1 + max(labels.max(), predictions.max())
    shares = (np.bincount(each, minlength=classes) / len(each) for each in (labels, predictions))
    return float(np.dot(*shares))


def is_surely_above(share: float, expected: float, count: int, risk: float) -> bool:
    """Tell whether so large a share of `count` images is less probable than the risk.

    `expected` is the share that would be expected; of one that is 1, the bound is exact.
    """
    if share <= expected:
        return False
    divergence = sum(
        part * log(part / other) if other > 0 else inf
        for part, other in ((share, expected), (1 - share, 1 - expected))
        if part > 0
    )
    return count * divergence > log(1 / risk)


class Confusion(NamedTuple):
    """A class of some images, how many of them are named right, and how many as another class."""

    label: int
    images: int
    right: int
    other: int
    named: int


def find_swapped_classes(labels: Integers, predictions: Integers, classes: int) -> list[Confusion]:
    """Return the classes that another takes the place of."""
    outdone = {each.label: each for each in _find_rivals(labels, predictions, classes)}
    return [
        each
        for each in outdone.values()
        if HARDLY * each.right <= each.named or each.other in outdone
    ]


def _find_rivals(labels: Integers, predictions: Integers, classes: int) -> Iterator[Confusion]:
    """Yield the classes for whose images another is named more often, with confidence."""
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


def _no_better_than_chance(labels: Integers, predictions: Integers) -> str:
    right, images = int((labels == predictions).sum()), len(labels)
    return (
        f"it is right about {right} of {images} images ({100 * right / images:.1f} %), which is no "
        f"better than chance, {100 * chance(labels, predictions):.1f} %"
    )


def _sentences(taken: Sequence[Confusion], names: Sequence[str]) -> Iterator[str]:
    # The clearest first.
    ordered = sorted(taken, key=lambda each: each.right - each.named)
    for each in ordered[:SHOWN]:
        yield visible(
            f"of {each.images} images of class {each.label} ({names[each.label]}) it is right "
            f"about {each.right}, and takes {each.named} for class {each.other} "
            f"({names[each.other]})"
        )
    if len(ordered) > SHOWN:
        yield f"so it is with {len(ordered) - SHOWN} classes more"


def warn_about_labels(
    model: str, images: Split, predictions: pd.DataFrame, say: Say = print
) -> list[str]:
    """Say what makes predictions on images of a split doubtful, and return it."""
    where, columns = images.metadata, ("label", "prediction")
    labels, found = (predictions[name].to_numpy(np.int64) for name in columns)
    warnings = [
        f"{model} on the split '{where['split']}' of data.{where['dataset']}: {doubt}: compare the "
        f"numbers of the classes, which the record of the run has, with the order of the outputs "
        f"of the network (`class_names` and `class_index` of the data set), its checkpoint, and "
        f"`mean` and `std`."
        for doubt in doubts(labels, found, images.classes)
    ]
    for warning in warnings:
        say(f"vitscope: warning: {warning}")
    return warnings
