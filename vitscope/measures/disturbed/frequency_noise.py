"""Noise of one frequency, and what it costs in accuracy: Fig. 2b of the paper.

Numpy draws and filters the noise on the CPU, even if the model runs on a GPU, so that every model
gets the same noise.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.disturbed.classify import Disturb, classify_disturbed
from vitscope.measures.disturbed.measure import noise_ring_sides
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.scores import accuracy_changes

if TYPE_CHECKING:
    from torch import Tensor


def noise_ring(frequency: float, width: float, size: ImageSize) -> Array:
    """Return a mask (height, width) of the components in the ring, with frequency 0 in the centre.

    The ring lies between two squares of even sides, which reach one component further to negative
    frequencies than to positive ones. For images that are not square, both squares are rectangles
    with the proportions of the image, up to rounding.
    """
    across = height_and_width(size)
    outer, inner = zip(*(noise_ring_sides(frequency, width, each) for each in across), strict=True)
    return _rectangle_of_frequencies(outer, across) & ~_rectangle_of_frequencies(inner, across)


def _rectangle_of_frequencies(lengths: tuple[int, ...], size: tuple[int, int]) -> Array:
    inside = np.zeros(size, bool)
    rows, columns = (
        slice((whole - length) // 2, (whole + length) // 2)
        for length, whole in zip(lengths, size, strict=True)
    )
    inside[rows, columns] = True
    return inside


def noise_filter(mask: Array) -> Array:
    """Convert a mask of the whole Fourier plane to factors for the components of `rfft2`.

    `mask` has frequency 0 in the centre. If it is not symmetric, a masked real image is complex;
    its real part is what the mean of the mask and its mirror image lets through.
    """
    kept = np.fft.ifftshift(mask).astype(np.float32)
    mirrored = np.roll(kept[::-1, ::-1], 1, axis=(0, 1))
    return ((kept + mirrored) / 2)[:, : mask.shape[1] // 2 + 1]


def random_noise_signs(seed: int, rows: Sequence[int], size: ImageSize, channels: int = 3) -> Array:
    """Draw 1 or -1 with equal probability, as float32 (N, channels, height, width)."""
    shape = (channels, *height_and_width(size))
    count = prod(shape)
    words = [
        np.random.Philox(key=np.array([seed, row], np.uint64)).random_raw(ceil(count / 64))
        for row in rows
    ]
    raw = np.stack(words).astype("<u8").view(np.uint8)
    bits = np.unpackbits(raw, axis=1, count=count).astype(np.float32)
    return (2 * bits - 1).reshape(len(rows), *shape)


def filter_images(images: Array, factors: Iterable[Array]) -> Iterator[Array]:
    """Yield real images, or noise, filtered by each of `factors`, which `noise_filter` returns."""
    spectrum = np.fft.rfft2(images)
    for factor in factors:
        yield np.fft.irfft2(spectrum * factor, s=images.shape[-2:])


def noise_disturbance(noise: Given) -> Disturb:
    """Return a function that yields, for each draw, the images with noise of each frequency."""

    def add_noise(images: "Tensor", rows: Sequence[int]) -> Iterator[Iterator["Tensor"]]:
        channels, size = images.shape[1], images.shape[2:]
        factors = [
            noise["eps"] * noise_filter(noise_ring(frequency, noise["width"], size))
            for frequency in noise["frequencies"]
        ]
        for seed in range(noise["seeds"]):
            drawn = filter_images(random_noise_signs(seed, rows, size, channels), factors)
            yield (images + images.new_tensor(filtered) for filtered in drawn)

    return add_noise


def noise_table(
    model: str, clean: Array, shares: Array, noise: Given, size: ImageSize, bootstrap: Given
) -> pd.DataFrame:
    """Build a model's table `frequency_noise` from what `shares_found` returns.

    `clean` is (N,), and `shares` (N, K) has a column for each frequency. The images have the size
    `size`.
    """
    frequencies, width = noise["frequencies"], noise["width"]
    table = pd.DataFrame(
        {
            "model": model,
            "frequency": np.array(frequencies, np.float64),
            "width": float(width),
            "eps": float(noise["eps"]),
            "image_size": height_and_width(size)[0],
            "components": [int(noise_ring(each, width, size).sum()) for each in frequencies],
            "images": len(clean),
            "seeds": noise["seeds"],
        }
    )
    changes = accuracy_changes(clean, shares, **bootstrap)
    return table.join(changes).sort_values("frequency", ignore_index=True)


def measure_frequency_noise(
    given: OnModel, chosen: Given, noise: Given, bootstrap: Given
) -> pd.DataFrame:
    clean, shares = classify_disturbed(given, chosen, noise_disturbance(noise))
    return noise_table(given.model, clean, shares, noise, given.settings["image_size"], bootstrap)
