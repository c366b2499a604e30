"""Check the recipe of a training run (`training` in a study), and choose the rows to train on."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vitscope.data.split import UNKNOWN_LABEL, Split, select
from vitscope.errors import VitscopeError

Recipe = Mapping[str, Any]
# The maximum share of test images that may be training images. Data sets have a few duplicates:
# 10 of the 10,000 test images of CIFAR-100 are among its training images.
MOST_SEEN = 0.01


def training_rows(split: Split, recipe: Recipe) -> npt.NDArray[np.int64]:
    """Return the rows of a training split that the recipe trains on."""
    return select(len(split), recipe["images"], recipe["seed"])


def check_recipe(recipe: Recipe, train_split: Split, test_split: Split) -> None:
    """Refuse a recipe that does not suit the splits, before training starts."""
    for split in (train_split, test_split):
        if UNKNOWN_LABEL in split.labels:
            raise VitscopeError(
                f"The split {split.metadata['split']} of {split.metadata['dataset']} has images "
                f"without labels: train on a data set that has them."
            )
    there, batch, epochs = len(train_split), recipe["batch_size"], recipe["epochs"]
    wanted = recipe["images"]
    if wanted is not None and wanted > there:
        raise VitscopeError(
            f"training.images is {wanted} and the training split has {there} images: lower it."
        )
    images = there if wanted is None else wanted
    if batch > images:
        raise VitscopeError(
            f"training.batch_size is {batch} and there are {images} images to train on: lower it."
        )
    if recipe["warmup_epochs"] >= epochs:
        raise VitscopeError(
            f"training.warmup_epochs is {recipe['warmup_epochs']} of {epochs} epochs: leave at "
            f"least one epoch after the warm-up."
        )
    _refuse_recipe_with_test_images(recipe, train_split, test_split)


def _refuse_recipe_with_test_images(recipe: Recipe, train_split: Split, test_split: Split) -> None:
    """Refuse test images that are also trained on: accuracy on them says nothing of new images."""
    if "sums" not in train_split.HOLDS & test_split.HOLDS:
        return
    trained_on = train_split.sums[training_rows(train_split, recipe)]
    seen, count = int(np.isin(test_split.sums, trained_on).sum()), len(test_split)
    if seen > MOST_SEEN * count:
        test, train = (each.metadata["split"] for each in (test_split, train_split))
        raise VitscopeError(
            f"{seen} of the {count} images of the split {test} of "
            f"{test_split.metadata['dataset']} are in the split {train} as well, and accuracy on "
            f"images that a network was trained on says nothing of others: give splits without "
            f"common images; in a `path`, {{split}} stands for the name of the split."
        )
