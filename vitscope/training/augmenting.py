"""Draw augmented training images as training does, and write them with their targets."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vitscope.data.image_rows import known_labels
from vitscope.data.split import Split, select
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter
from vitscope.training.batches import Batch, Batches
from vitscope.training.recipe import Recipe, training_rows

CLEAN_BATCH = 256


def augment_images(
    split: Split,
    recipe: Recipe,
    images: int,
    seed: int,
    path: Path | str,
    *,
    mean: list[float],
    std: list[float],
    clean: bool = False,
) -> None:
    """Write `images` augmented images of a training split, normalized and mixed, and their targets.

    With `clean` they are the first ones that the seed chooses, as they are, with one-hot targets.
    """
    rows = training_rows(split, recipe)
    known_labels(split, rows.tolist())
    if not clean:
        _check_batches(recipe, len(rows))
    shape = (images, *split.shape)
    tensors = {"images": ("F32", shape), "targets": ("F32", (images, len(split.classes)))}
    metadata = {"data_sha256": split.digest, "seed": str(seed), "clean": str(clean)}
    with TensorWriter(path, tensors, metadata) as writer:
        drawn = (
            _clean(split, rows, images, seed, mean, std)
            if clean
            else _drawn(split, recipe, seed, mean, std)
        )
        first = 0
        while first < images:
            pixels, targets = next(drawn)
            taken = min(len(pixels), images - first)
            writer.write("images", first, pixels[:taken].numpy())
            writer.write("targets", first, targets[:taken].numpy())
            first += taken


def _check_batches(recipe: Recipe, there: int) -> None:
    """Refuse batches that training could not draw either."""
    size = recipe["batch_size"]
    if size > there:
        raise VitscopeError(
            f"training.batch_size is {size} and there are {there} images to draw from: lower it "
            f"there, or in loss.augment if the study has it, or give the split more images."
        )


def _drawn(
    split: Split, recipe: Recipe, seed: int, mean: list[float], std: list[float]
) -> Iterator[Batch]:
    """Yield batches as in training, epoch after epoch, without an end."""
    batches = Batches(split, recipe, seed, mean, std)
    for epoch in count():
        for step in range(batches.steps):
            yield batches.draw(epoch, step)


def _clean(
    split: Split,
    rows: npt.NDArray[np.int64],
    images: int,
    seed: int,
    mean: list[float],
    std: list[float],
) -> Iterator[tuple[Tensor, Tensor]]:
    if images > len(rows):
        raise VitscopeError(
            f"The study asks for the loss of {images} images as they are, and there are "
            f"{len(rows)}: lower analysis.augmented.images, and analysis.fit.images for the fit."
        )
    chosen = rows[select(len(rows), images, seed)]
    for first in range(0, images, CLEAN_BATCH):
        group = chosen[first : first + CLEAN_BATCH]
        labels = torch.tensor(split.labels[group])
        hot = torch.nn.functional.one_hot(labels, len(split.classes)).float()
        yield split.normalize(group.tolist(), mean, std), hot
