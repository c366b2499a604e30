"""The recipe of a training: the keys of `training` in a study, and what it can be used for."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vitscope.data.split import UNKNOWN_LABEL, Split, select
from vitscope.errors import VitscopeError

Recipe = Mapping[str, Any]


def training_rows(split: Split, recipe: Recipe) -> npt.NDArray[np.int64]:
    """Return the rows of a training split that the recipe trains on."""
    return select(len(split), recipe["images"], recipe["seed"])


def check(recipe: Recipe, train_split: Split, test_split: Split) -> None:
    """Refuse what cannot be trained, before spending time on it."""
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
