"""Augmented training images, drawn once: what the loss is measured on away from training.

A model is trained on images that are shifted, flipped, mixed and so on, with smoothed targets, and
its loss on anything else is another function. All measurements share one draw: what differs between
two points of a landscape is then the weights alone.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vitscope.data.split import Split, normalized, select
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.networks.predictions import known_labels
from vitscope.training.loop import (
    Pixels,
    augmentation,
    batches,
    erasing,
    mixing,
    seeded,
    training_rows,
)

CLEAN_BATCH = 256

Drawn = tuple[Pixels, npt.NDArray[np.int64]]


def _drawn(
    split: Split, rows: npt.NDArray[np.int64], images: int, recipe: Mapping[str, Any], mean: Any
) -> Iterator[Drawn]:
    """Yield batches as in training, epoch after epoch, until there are enough images."""
    augment, size = augmentation(recipe, mean), recipe["batch_size"]
    drawn = 0
    while drawn < images:
        for pixels, labels in batches(split, rows, size, augment):
            yield pixels, labels
            drawn += len(labels)
            if drawn >= images:
                return


def build(
    split: Split,
    recipe: Mapping[str, Any],
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
    with TensorWriter(path, tensors, metadata) as writer, seeded(seed):
        first = 0
        drawn = (
            _clean(split, rows, images, seed, mean, std)
            if clean
            else _mixed(split, rows, images, recipe, mean, std)
        )
        for pixels, targets in drawn:
            count = min(len(pixels), images - first)
            writer.write("images", first, pixels[:count].numpy())
            writer.write("targets", first, targets[:count].numpy())
            first += count


def _check_batches(recipe: Mapping[str, Any], there: int) -> None:
    """Refuse batches that training could not draw either."""
    size = recipe["batch_size"]
    if size > there:
        raise VitscopeError(
            f"training.batch_size is {size} and there are {there} images to draw from: lower it, "
            f"or give the split more images."
        )
    if size % 2 and (recipe["mixup"] or recipe["cutmix"]):
        raise VitscopeError(
            f"training.batch_size is {size}, and mixup and CutMix need an even one: change it."
        )


def _mixed(
    split: Split,
    rows: npt.NDArray[np.int64],
    images: int,
    recipe: Mapping[str, Any],
    mean: list[float],
    std: list[float],
) -> Iterator[tuple[Tensor, Tensor]]:
    mix, erase = mixing(recipe, len(split.classes)), erasing(recipe)
    for pixels, labels in _drawn(split, rows, images, recipe, mean):
        mixed, targets = mix(erase(normalized(pixels, mean, std)), torch.tensor(labels))
        yield mixed, targets.float()


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
            f"analysis.augmented.images: the study asks for {images} clean images and there are "
            f"{len(rows)}: lower it."
        )
    chosen = rows[select(len(rows), images, seed)]
    for first in range(0, images, CLEAN_BATCH):
        group = chosen[first : first + CLEAN_BATCH]
        labels = torch.tensor(split.labels[group])
        hot = torch.nn.functional.one_hot(labels, len(split.classes)).float()
        yield split.normalized(group.tolist(), mean, std), hot


class Augmented:
    """Images and targets that were drawn, mapped into memory."""

    def __init__(self, path: Path | str) -> None:
        self._file = TensorFile(path)
        if set(self._file.names) != {"images", "targets"}:
            raise VitscopeError(f"{path} holds no augmented images: delete it and run again.")

    def __len__(self) -> int:
        return self._file.shape("images")[0]

    @property
    def metadata(self) -> dict[str, str]:
        """What is known of where the images come from."""
        return self._file.metadata

    def rows(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Return the images and targets from `first` to before `last`."""
        images, targets = self._file.array("images"), self._file.array("targets")
        return torch.tensor(images[first:last]), torch.tensor(targets[first:last])

    def batches(self, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all images with their targets in batches."""
        for first in range(0, len(self), batch_size):
            yield self.rows(first, first + batch_size)
