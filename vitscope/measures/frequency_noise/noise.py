"""Noise of one frequency: the ring of the Fourier plane, and what it lets pass of random signs.

By numpy, so that every model gets the same on any device.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, prod

import numpy as np

from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.frequency_noise.rings import sides


def ring(frequency: float, width: float, size: ImageSize) -> Array:
    """Return which components lie in the ring, (height, width), with frequency 0 in the centre.

    The squares have even sides, so that they reach one component further to negative frequencies
    than to positive ones. For images that are not square they are rectangles of their proportion.
    """
    across = height_and_width(size)
    outer, inner = zip(*(sides(frequency, width, each) for each in across), strict=True)
    return _rectangle(outer, across) & ~_rectangle(inner, across)


def _rectangle(lengths: tuple[int, ...], size: tuple[int, int]) -> Array:
    inside = np.zeros(size, bool)
    rows, columns = (
        slice((whole - length) // 2, (whole + length) // 2)
        for length, whole in zip(lengths, size, strict=True)
    )
    inside[rows, columns] = True
    return inside


def half_plane(mask: Array) -> Array:
    """Return the factors of the components of a real transform that do what a mask does.

    `mask` is of the whole plane, with frequency 0 in the centre. What it lets pass of a real image
    is complex where it is not symmetric; the real part of that is what passes the mean of the mask
    and its mirror image.
    """
    kept = np.fft.ifftshift(mask).astype(np.float32)
    mirrored = np.roll(kept[::-1, ::-1], 1, axis=(0, 1))
    return ((kept + mirrored) / 2)[:, : mask.shape[1] // 2 + 1]


def signs(seed: int, rows: Sequence[int], size: ImageSize, channels: int = 3) -> Array:
    """Return 1 or -1, each as likely, as float32 (N, channels, height, width).

    The signs of an image depend on the seed and on its row in the artefact, and on nothing else.
    """
    shape = (channels, *height_and_width(size))
    count = prod(shape)
    words = [
        np.random.Philox(key=np.array([seed, row], np.uint64)).random_raw(ceil(count / 64))
        for row in rows
    ]
    raw = np.stack(words).astype("<u8").view(np.uint8)
    bits = np.unpackbits(raw, axis=1, count=count).astype(np.float32)
    return (2 * bits - 1).reshape(len(rows), *shape)


def noises(images: Array, factors: Iterable[Array]) -> Iterator[Array]:
    """Yield what is left of real images, or of noise, behind each filter of `half_plane`."""
    spectrum = np.fft.rfft2(images)
    for factor in factors:
        yield np.fft.irfft2(spectrum * factor, s=images.shape[-2:])
