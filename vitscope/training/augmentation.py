"""What training does to a batch of images: shift, flip, RandAugment, erase, mix.

All of it draws from the global generators, as timm does: the caller seeds them.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from vitscope.errors import VitscopeError
from vitscope.files.pictures import as_picture, as_pixels
from vitscope.networks.building.timm_import import import_timm
from vitscope.training.recipe import Recipe

Pixels = npt.NDArray[np.uint8]
Augment = Callable[[Pixels], Pixels]
Mix = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def augmentation(recipe: Recipe, mean: list[float]) -> Augment:
    """Return what is done to the pixels of a batch, (N, H, W, C): shift, flip, RandAugment."""
    policy = randaugment(recipe["randaugment"], mean)

    def augment(pixels: Pixels) -> Pixels:
        pixels = move(pixels, recipe["shift"], recipe["flip"])
        return pixels if policy is None else np.stack([policy(image) for image in pixels])

    return augment


def randaugment(notation: str | None, mean: list[float]) -> Augment | None:
    """Return timm's RandAugment of one image, (H, W, C), from its notation."""
    if notation is None:
        return None
    fill = tuple(round(255 * value) for value in mean)
    try:
        policy = import_timm("timm.data.auto_augment").rand_augment_transform(
            notation, {"img_mean": fill}
        )
    except (AssertionError, ValueError, IndexError, KeyError) as error:
        raise VitscopeError(
            f"training.randaugment is {notation!r}, which timm does not understand: write it "
            f"like rand-m9-n2-mstd0.5, or null for none."
        ) from error
    return lambda pixels: as_pixels(policy(as_picture(pixels)))


def move(pixels: Pixels, shift: int, flip: bool) -> Pixels:
    """Return images, (N, H, W, C), shifted by up to `shift` pixels, half of them flipped.

    What comes in from outside is the image reflected at its edge.
    """
    if not shift and not flip:
        return pixels
    count, height, width, channels = pixels.shape
    down, right = np.random.randint(-shift, shift + 1, (2, count, 1))  # noqa: NPY002
    rows = _reflect(np.arange(height) + down, height)
    columns = _reflect(np.arange(width) + right, width)
    if flip:
        flipped = np.random.random(count) < 0.5  # noqa: NPY002
        columns[flipped] = columns[flipped, ::-1]
    places = (np.arange(count)[:, None, None] * height + rows[:, :, None]) * width
    # All channels of a pixel are one item: four times as fast.
    items = np.ascontiguousarray(pixels).view(f"V{channels}").ravel()
    chosen: Pixels = items[places + columns[:, None, :]].view(np.uint8)
    return chosen.reshape(pixels.shape)


def _reflect(places: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Return the places in an image of those outside of it, which is reflected at its edges."""
    last = size - 1
    return last - np.abs(last - places % max(1, 2 * last))


def mixing(recipe: Recipe, classes: int) -> Mix:
    """Return what blends the images of a batch, in place, and makes targets of their labels.

    Images are mixed in pairs; the last one of an odd number is left as it is.
    """
    smoothing = recipe["label_smoothing"]

    def smoothed(labels: Tensor) -> Tensor:
        hot: Tensor = functional.one_hot(labels, classes).float()
        return hot.mul_(1 - smoothing).add_(smoothing / classes)

    if not recipe["mixup"] and not recipe["cutmix"]:
        return lambda images, labels: (images, smoothed(labels))
    mixup = import_timm("timm.data").Mixup(
        mixup_alpha=recipe["mixup"],
        cutmix_alpha=recipe["cutmix"],
        prob=recipe["mixing_probability"],
        label_smoothing=smoothing,
        num_classes=classes,
    )

    def mix(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        even = len(images) // 2 * 2
        _, targets = mixup(images[:even], labels[:even])
        return images, torch.cat([targets, smoothed(labels[even:])])

    return mix


def erasing(recipe: Recipe) -> Callable[[Tensor], Tensor]:
    """Return what fills a random rectangle of some normalized images with noise."""
    share = recipe["erasing"]
    if not share:
        return lambda images: images
    erase: Callable[[Tensor], Tensor] = import_timm("timm.data.random_erasing").RandomErasing(
        share, mode="pixel", device="cpu"
    )
    return erase
