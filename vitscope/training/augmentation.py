"""Augment a batch of training images: crop, shift, flip, RandAugment, jitter, erase, mix.

The first half changes pixels, on the CPU; the second half changes normalized images, on their
device. Both halves draw from the global generators, as timm does, so the caller must seed these.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from vitscope.data.split import standardize
from vitscope.errors import VitscopeError
from vitscope.files.images import Pixels, as_picture, as_pixels
from vitscope.networks.building.timm_import import import_timm
from vitscope.training.recipe import Recipe

CPU = torch.device("cpu")
# The images of a batch, each (H, W, C), perhaps of several sizes.
Images = Sequence[Pixels] | Pixels
Augment = Callable[[Pixels], Pixels]
Mix = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def augmentation(
    recipe: Recipe, mean: list[float], size: Sequence[int]
) -> Callable[[Images], Pixels]:
    """Return the first half, which crops images (H, W, C) to `size`, moves and recolours them."""
    crop = cropping(recipe["crop"], size)
    repaint = [randaugment(recipe["randaugment"], mean), color_jittering(recipe["color_jitter"])]

    def augment_pixels(images: Images) -> Pixels:
        pixels = np.stack([crop(image) for image in images]) if crop else np.asarray(images)
        pixels = shift_and_flip(pixels, recipe["shift"], recipe["flip"], recipe["border"])
        for change in filter(None, repaint):
            pixels = np.stack([change(image) for image in pixels])
        return pixels

    return augment_pixels


def cropping(shares: Sequence[float] | None, size: Sequence[int]) -> Augment | None:
    """Return a function that crops out a random share of an image's area and resizes it to `size`.

    `shares` are the smallest and the largest share; for None, return None.
    """
    if shares is None:
        return None
    random_crop = import_timm("timm.data.transforms").RandomResizedCropAndInterpolation(
        tuple(size), scale=tuple(shares), interpolation="random"
    )
    return lambda pixels: as_pixels(random_crop(as_picture(pixels)))


def color_jittering(share: float) -> Augment | None:
    """Return a function that changes brightness, contrast and saturation by up to `share` each."""
    if not share:
        return None
    change = import_timm("torchvision.transforms").ColorJitter(share, share, share)
    return lambda pixels: as_pixels(change(as_picture(pixels)))


def randaugment(notation: str | None, mean: list[float]) -> Augment | None:
    """Return timm's RandAugment for one image (H, W, C), as `notation` describes it."""
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


def shift_and_flip(pixels: Pixels, shift: int, flip: bool, border: str) -> Pixels:
    """Shift images (N, H, W, C) by up to `shift` pixels; if `flip`, flip a random half of them."""
    if not shift and not flip:
        return pixels
    _, height, width, _ = pixels.shape
    beyond = shift if border == "black" else 0
    if beyond:
        pixels = np.pad(pixels, ((0, 0), (beyond, beyond), (beyond, beyond), (0, 0)))
    count, high, wide, channels = pixels.shape
    down, right = np.random.randint(-shift, shift + 1, (2, count, 1))  # noqa: NPY002
    rows = _reflect_positions(np.arange(height) + beyond + down, high)
    columns = _reflect_positions(np.arange(width) + beyond + right, wide)
    if flip:
        flipped = np.random.random(count) < 0.5  # noqa: NPY002
        columns[flipped] = columns[flipped, ::-1]
    places = (np.arange(count)[:, None, None] * high + rows[:, :, None]) * wide
    # Treat all channels of a pixel as one item, which is four times as fast.
    items = np.ascontiguousarray(pixels).view(f"V{channels}").ravel()
    chosen: Pixels = items[places + columns[:, None, :]].view(np.uint8)
    return chosen.reshape(count, height, width, channels)


def _reflect_positions(places: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    last = size - 1
    return last - np.abs(last - places % max(1, 2 * last))


def finishing_augmentation(
    recipe: Recipe, classes: int, mean: Sequence[float], std: Sequence[float], device: torch.device
) -> Mix:
    """Return the second half, which turns pixels and labels into images and soft targets.

    Pixels are (N, H, W, C), and images (N, C, H, W).
    """
    erase, mix = erasing(recipe, device), mixing(recipe, classes)
    center, spread = (torch.tensor(each, device=device).view(-1, 1, 1) for each in (mean, std))

    def finish_batch(pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        images = standardize(pixels.permute(0, 3, 1, 2), center, spread)
        return mix(erase(images), labels)

    return finish_batch


def mixing(recipe: Recipe, classes: int) -> Mix:
    """Return a function that blends pairs of images in place and turns labels into targets."""
    smoothing = recipe["label_smoothing"]

    def smoothed_targets(labels: Tensor) -> Tensor:
        hot: Tensor = functional.one_hot(labels, classes).float()
        return hot.mul_(1 - smoothing).add_(smoothing / classes)

    if not recipe["mixup"] and not recipe["cutmix"]:
        return lambda images, labels: (images, smoothed_targets(labels))
    mixup = import_timm("timm.data").Mixup(
        mixup_alpha=recipe["mixup"],
        cutmix_alpha=recipe["cutmix"],
        prob=recipe["mixing_probability"],
        label_smoothing=smoothing,
        num_classes=classes,
    )

    def mix_pairs(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        # Images are mixed in pairs: leave out the last one of an odd number.
        even = len(images) // 2 * 2
        _, targets = mixup(images[:even], labels[:even])
        return images, torch.cat([targets, smoothed_targets(labels[even:])])

    return mix_pairs


def erasing(recipe: Recipe, device: torch.device = CPU) -> Callable[[Tensor], Tensor]:
    """Return a function that fills a rectangle of some normalized images with noise or zeros."""
    share = recipe["erasing"]
    if not share:
        return lambda images: images
    erase: Callable[[Tensor], Tensor] = import_timm("timm.data.random_erasing").RandomErasing(
        share, mode="pixel" if recipe["erased"] == "noise" else "const", device=device
    )
    return erase
