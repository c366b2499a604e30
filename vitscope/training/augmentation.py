"""What training does to its images: shift, flip, RandAugment, erase, mix; and batches of them."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from vitscope.data.split import Split, normalized
from vitscope.errors import VitscopeError
from vitscope.files.pictures import as_picture, as_pixels
from vitscope.networks.timm_import import import_timm
from vitscope.training.recipe import Recipe, training_rows

Pixels = npt.NDArray[np.uint8]
Augment = Callable[[Pixels], Pixels]


def augmentation(recipe: Recipe, mean: list[float]) -> Augment:
    """Return what is done to each image, (H, W, C): shift, flip, RandAugment."""
    policy = None
    if recipe["randaugment"]:
        auto_augment = import_timm("timm.data.auto_augment")
        fill = tuple(round(255 * value) for value in mean)
        try:
            options = {"img_mean": fill}
            policy = auto_augment.rand_augment_transform(recipe["randaugment"], options)
        except (AssertionError, ValueError, IndexError, KeyError) as error:
            raise VitscopeError(
                f"training.randaugment is {recipe['randaugment']!r}, which timm does not "
                f"understand: write it like rand-m9-n2-mstd0.5, or null for none."
            ) from error
    shift = recipe["shift"]

    def augment(pixels: Pixels) -> Pixels:
        if shift:
            height, width, _ = pixels.shape
            top, left = random.randint(0, 2 * shift), random.randint(0, 2 * shift)
            padded = np.pad(pixels, ((shift, shift), (shift, shift), (0, 0)), mode="reflect")
            pixels = padded[top : top + height, left : left + width]
        if recipe["flip"] and random.random() < 0.5:
            pixels = pixels[:, ::-1]
        if policy is not None:
            pixels = as_pixels(policy(as_picture(pixels)))
        return pixels

    return augment


def batches(
    split: Split, rows: npt.NDArray[np.int64], batch_size: int, augment: Augment
) -> Iterator[tuple[Pixels, npt.NDArray[np.int64]]]:
    """Yield one epoch of augmented images in a random order; what fills no batch is left out."""
    order = rows[torch.randperm(len(rows)).numpy()]
    for first in range(0, len(order) - batch_size + 1, batch_size):
        chosen = order[first : first + batch_size]
        images = split.images(chosen).transpose(0, 2, 3, 1)
        augmented = np.stack([augment(image) for image in images])
        yield augmented.transpose(0, 3, 1, 2), split.labels[chosen]


def mixing(recipe: Recipe, classes: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return what blends the images of a batch and makes targets of their labels."""
    smoothing = recipe["label_smoothing"]
    if recipe["mixup"] or recipe["cutmix"]:
        mixup: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = import_timm("timm.data").Mixup(
            mixup_alpha=recipe["mixup"],
            cutmix_alpha=recipe["cutmix"],
            prob=recipe["mixing_probability"],
            label_smoothing=smoothing,
            num_classes=classes,
        )
        return mixup

    def smoothed(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        hot = functional.one_hot(labels, classes).float()
        return images, hot * (1 - smoothing) + smoothing / classes

    return smoothed


def erasing(recipe: Recipe) -> Callable[[Tensor], Tensor]:
    """Return what fills a random rectangle of some normalized images with noise."""
    share = recipe["erasing"]
    if not share:
        return lambda images: images
    erase: Callable[[Tensor], Tensor] = import_timm("timm.data.random_erasing").RandomErasing(
        share, mode="pixel", device="cpu"
    )
    return erase


class Epoch:
    """The batches of an epoch of training; whoever iterates over it again gets another draw."""

    def __init__(self, split: Split, recipe: Recipe, mean: list[float], std: list[float]) -> None:
        self._split, self._rows = split, training_rows(split, recipe)
        self._batch_size = int(recipe["batch_size"])
        self._mean, self._std = mean, std
        self._augment, self._erase = augmentation(recipe, mean), erasing(recipe)
        self._mix = mixing(recipe, len(split.classes))

    def __len__(self) -> int:
        return len(self._rows) // self._batch_size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield normalized images and their soft targets."""
        for pixels, labels in batches(self._split, self._rows, self._batch_size, self._augment):
            images = normalized(pixels, self._mean, self._std)
            yield self._mix(self._erase(images), torch.tensor(labels))
