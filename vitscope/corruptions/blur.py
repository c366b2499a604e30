"""Blur: out of focus, through frosted glass, in motion, towards the camera."""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product

import numpy as np
from scipy import fft, ndimage

from vitscope.corruptions.images import Draws, Images, Maps, draw_each, map_both_axes


def disk(radius: float, smoothing: float) -> Maps:
    """Return the kernel of a lens out of focus: a disk with a soft edge, whose sum is 1."""
    reach = max(8, int(np.ceil(radius))) + 2
    offset = np.arange(-reach, reach + 1)
    inside = np.hypot(*np.meshgrid(offset, offset)) <= radius
    taps = 1 if radius <= 8 else 2
    soft = np.exp(-np.square(np.arange(-taps, taps + 1) / smoothing) / 2)
    kernel = ndimage.convolve(inside.astype(np.float64), np.outer(soft, soft))
    used = reach - (kernel > 0).any(axis=0).argmax()
    kernel = kernel[reach - used : reach + used + 1, reach - used : reach + used + 1]
    normalized: Maps = kernel / kernel.sum()
    return normalized


def defocus_blur(images: Images, draws: Draws, radius: float, smoothing: float) -> Images:
    """Convolve with a disk; beyond its edge an image goes on as in a mirror."""
    kernel = disk(radius, smoothing).astype(np.float32)
    reach = len(kernel) // 2
    height, width = images.shape[-2:]
    shape = [fft.next_fast_len(side + 2 * reach, real=True) for side in (height, width)]
    response = fft.rfft2(kernel, shape)
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="reflect")
    # Image by image: the rounding of a transform may depend on how many are made at once.
    blurred = [fft.irfft2(fft.rfft2(image, shape) * response, shape) for image in padded]
    return np.stack(blurred)[..., 2 * reach :, 2 * reach :][..., :height, :width]


def gaussian(deviation: float, mode: str, truncate: float) -> Callable[[int], Maps]:
    """Return SciPy's Gaussian filter as a map of lines."""

    def matrix(length: int) -> Maps:
        lines: Maps = ndimage.gaussian_filter(
            np.eye(length), (deviation, 0), mode=mode, truncate=truncate
        )
        return lines

    return matrix


def glass_blur(images: Images, draws: Draws, deviation: float, reach: int, rounds: int) -> Images:
    """Blur, swap every pixel with one that is near, and blur again."""
    smooth = gaussian(deviation, "nearest", truncate=4.0)
    blurred = np.rint(255 * map_both_axes(smooth, images)).astype(np.uint8)
    shuffled = swap_pixels(blurred, draws, reach, rounds)
    return map_both_axes(smooth, shuffled.astype(np.float32) / 255)


def swap_pixels(images: Maps, draws: Draws, reach: int, rounds: int) -> Maps:
    """Swap every pixel, from the last to the first, with one that is up to `reach` away.

    All images take the same step at once, with partners of their own.
    """
    count, channels, height, width = images.shape
    inside = product(range(height - reach, reach, -1), range(width - reach, reach, -1))
    positions = np.array([row * width + column for row, column in inside] * rounds)
    steps = draw_each(
        lambda draw: draw.integers(-reach, reach, (2, len(positions)), dtype=np.int8), draws
    ).astype(np.intp)
    partners = positions[:, None] + steps[:, 0].T * width + steps[:, 1].T
    # Pixels as rows of (height * width, images): the three channels of one move together.
    pixels = np.zeros((height * width, count, 4), np.uint8)
    pixels[..., :channels] = images.reshape(count, channels, -1).transpose(2, 0, 1)
    whole = pixels.view(np.uint32)[..., 0]
    flat, image = whole.reshape(-1), np.arange(count)
    for position, partner in zip(positions, partners * count + image, strict=True):
        here = whole[position].copy()
        whole[position] = flat[partner]
        flat[partner] = here
    return pixels[..., :channels].transpose(1, 2, 0).reshape(images.shape)


def motion_blur(images: Images, draws: Draws, radius: int, deviation: float) -> Images:
    """Smear along a direction that lies within 45 degrees of the horizontal."""
    angles = draw_each(lambda draw: np.asarray(draw.uniform(-45, 45)), draws)
    return smear(images, angles, radius, deviation)


def trail(angle: float, radius: int, deviation: float) -> tuple[Maps, Maps]:
    """Return the steps (down, right) of a motion and their weights, whose sum is 1.

    The weights are half of a Gaussian: a thing that moves leaves its trail on one side.
    """
    step = np.arange(2 * radius + 1)
    weights = np.exp(-np.square(step / deviation) / 2)
    direction = np.array([np.sin(np.radians(angle)), np.cos(np.radians(angle))])
    steps = np.ceil(step[:, None] * direction - 0.5).astype(np.intp)
    return steps, weights / weights.sum()


def smear(images: Images, angles: Maps, radius: int, deviation: float) -> Images:
    """Blur images along their angles; beyond its edge an image goes on as it ends there."""
    reach = 2 * radius
    height, width = images.shape[-2:]
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="edge")
    blurred = np.zeros_like(images)
    for source, target, angle in zip(padded, blurred, angles, strict=True):
        steps, weights = trail(float(angle), radius, deviation)
        for (down, right), weight in zip(steps + reach, weights.astype(np.float32), strict=True):
            target += weight * source[:, down : down + height, right : right + width]
    return blurred


@lru_cache(maxsize=256)
def zoom(factor: float, length: int) -> Maps:
    """Return the map of lines that enlarges their middle by a factor, linearly between pixels."""
    kept = int(np.ceil(length / factor))
    first = (length - kept) // 2
    enlarged = ndimage.zoom(np.eye(length)[first : first + kept], (factor, 1), order=1)
    trimmed = (len(enlarged) - length) // 2
    lines: Maps = enlarged[trimmed : trimmed + length]
    return lines


def zoom_blur(images: Images, draws: Draws, largest: float, step: float) -> Images:
    """Average images with their enlarged middles, as a camera that comes nearer sees them."""
    factors = np.arange(1, largest + step / 2, step).tolist()
    total = images.copy()
    for factor in factors:
        total += map_both_axes(partial(zoom, factor), images)
    return total / np.float32(len(factors) + 1)
