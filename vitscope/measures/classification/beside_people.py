"""Measure how often a network is right, condition by condition, and if it errs where people do."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitscope.claims.intervals import TAILS, share_interval
from vitscope.data.shown_images import read_shown_conditions, read_shown_images
from vitscope.data.sources.cue_conflict import read_cue_conflict_categories
from vitscope.data.sources.model_vs_human import SHOWN_SET
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import bootstrap_image_means
from vitscope.measures.classification.shape_texture import letters_of, mean_kappa
from vitscope.measures.given import OnPredictions

# The row with the mean over the conditions that count.
MEAN = "mean"


def read_people_right(name: str) -> Array:
    """Read whether each person found the category of each image of a set: (people, images)."""
    shown = read_shown_images(name)
    letter = {each: chr(ord("a") + nth) for nth, each in enumerate(read_cue_conflict_categories())}
    right: Array = shown["category"].map(letter).to_numpy() == letters_of(shown["decisions"]).T
    return right


class BesidePeople(NamedTuple):
    """What is known of a network and of people on some images.

    `values` are the network's accuracy and its error consistency with people, and `resampled`
    (resamples, 2) the same in resamples of the images. `people` (2, people) are those of each
    person, whose consistency is with the other people.
    """

    values: Array
    resampled: Array
    people: Array
    images: int

    def columns(self) -> dict[str, Any]:
        """Return the columns of a row of the table."""
        accuracy, consistency = self.values
        (low, high), *kappa = (_interval(each, self.images) for each in self.resampled.T)
        if low == high:
            low, high = share_interval(round(accuracy * self.images), self.images)
        found = {"images": self.images, "accuracy": accuracy, "ci_low": low, "ci_high": high}
        found |= {"consistency": consistency, "people": self.people.shape[1]}
        found |= dict(zip(("consistency_low", "consistency_high"), kappa[0], strict=True))
        for name, each in zip(("accuracy", "consistency"), self.people, strict=True):
            found[f"people_{name}"] = each.mean()
            found[f"people_{name}_lowest"] = each.min()
            found[f"people_{name}_highest"] = each.max()
        return found


def _interval(resampled: Array, images: int) -> tuple[float, float]:
    if images < 2 or not np.isfinite(resampled).any():
        return np.nan, np.nan
    low, high = np.nanpercentile(resampled, TAILS)
    return float(low), float(high)


def compare_with_people(right: Array, people: Array, resamples: int, seed: int) -> BesidePeople:
    """Compare a network with people: `right` (images,), `people` (people, images)."""
    values = _images_right(right, people)
    resampled = bootstrap_image_means(values, resamples, seed)
    others = (np.delete(people, nth, axis=0) for nth in range(len(people)))
    with_others = [_scores(_means(each, rest)) for each, rest in zip(people, others, strict=True)]
    return BesidePeople(
        _scores(_means(right, people))[0],
        _scores(resampled),
        np.concatenate(with_others).T,
        len(right),
    )


def _images_right(right: Array, people: Array) -> Array:
    """Return, for each image, if one is right, if each person is, and if both are."""
    return np.column_stack([right, people.T, (people & right).T]).astype(np.float64)


def _means(right: Array, people: Array) -> Array:
    means: Array = _images_right(right, people).mean(axis=0, keepdims=True)
    return means


def _scores(means: Array) -> Array:
    """Return the accuracy and the mean kappa of each row of means of `_images_right`."""
    return np.column_stack([means[:, 0], mean_kappa(means)])


def mean_over_conditions(found: list[BesidePeople]) -> BesidePeople:
    """Average over conditions, whose images are resampled independently of each other."""
    return BesidePeople(
        np.mean([each.values for each in found], axis=0),
        np.mean([each.resampled for each in found], axis=0),
        np.mean([each.people for each in found], axis=0),
        sum(each.images for each in found),
    )


def shown_set_of(images: Split) -> str:
    """Return which set of images that people were shown a split has; refuse others."""
    name = images.metadata.get(SHOWN_SET)
    if name is None:
        raise VitscopeError(
            f"data.{images.metadata['dataset']}: no decisions of people are known for these "
            f"images: use the source `model_vs_human`."
        )
    return name


def compare_on_set(
    name: str, index: Array, right: Array, resamples: int, seed: int
) -> pd.DataFrame:
    """Return a row for each condition of a set, and one for the mean over those that count.

    `right` says if a network is right about the images `index` of the set.
    """
    conditions, shown = read_shown_conditions(name), read_shown_images(name)
    people = read_people_right(name)[:, index]
    place = conditions["condition"].tolist().index
    position = shown["condition"].map(place).to_numpy()[index]
    found = {
        # Images differ between conditions, and so does the seed of their resamples.
        nth: compare_with_people(
            right[position == nth], people[:, position == nth], resamples, seed + nth
        )
        for nth in np.unique(position).tolist()
    }
    named = conditions["condition"].to_dict() | {len(conditions): MEAN}
    counts = (conditions["counted"] == "1").to_dict() | {len(conditions): True}
    if counted := [each for nth, each in found.items() if counts[nth]]:
        found[len(conditions)] = mean_over_conditions(counted)
    return pd.DataFrame(
        {"position": nth, "condition": named[nth], "counted": counts[nth]} | each.columns()
        for nth, each in found.items()
    ).assign(set=name)


def measure_beside_people(given: OnPredictions, resamples: int, seed: int) -> pd.DataFrame:
    """Measure accuracy and error consistency of a model with people, condition by condition."""
    name, predictions = shown_set_of(given.images), given.predictions
    index = given.images.column("index")[predictions["image"].to_list()]
    right = (predictions["prediction"] == predictions["label"]).to_numpy(bool)
    return compare_on_set(name, index, right, resamples, seed).assign(model=given.model)
