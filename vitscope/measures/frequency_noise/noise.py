"""Noise of one frequency: the ring of the Fourier plane, and what it lets pass of random signs.

By numpy, so that every model gets the same on any device.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

import numpy as np

from vitscope.files.arrays import Array
from vitscope.measures.frequency_noise.rings import sides


def ring(frequency: float, width: float, size: int) -> Array:
    """Return which components lie in the ring, (size, size), with frequency 0 in the centre.

    The squares have even sides, so that they reach one component further to negative frequencies
    than to positive ones.
    """
    outer, inner = (_square(side, size) for side in sides(frequency, width, size))
    return outer & ~inner


def _square(side: int, size: int) -> Array:
    inside = np.zeros((size, size), bool)
    border = (size - side) // 2
    inside[border : size - border, border : size - border] = True
    return inside


def half_plane(mask: Array) -> Array:
    """Return the factors of the components of a real transform that do what a mask does.

    `mask` is of the whole plane, with frequency 0 in the centre. What it lets pass of a real image
    is complex where it is not symmetric; the real part of that is what passes the mean of the mask
    and its mirror image.
    """
    kept = np.fft.ifftshift(mask).astype(np.float32)
    mirrored = np.roll(kept[::-1, ::-1], 1, axis=(0, 1))
    return ((kept + mirrored) / 2)[:, : len(mask) // 2 + 1]


def signs(seed: int, rows: Sequence[int], size: int, channels: int = 3) -> Array:
    """Return 1 or -1, each as likely, as float32 (N, channels, size, size).

    The signs of an image depend on the seed and on its row in the artefact, and on nothing else.
    """
    count = channels * size * size
    words = [
        np.random.Philox(key=np.array([seed, row], np.uint64)).random_raw(ceil(count / 64))
        for row in rows
    ]
    raw = np.stack(words).astype("<u8").view(np.uint8)
    bits = np.unpackbits(raw, axis=1, count=count).astype(np.float32)
    return (2 * bits - 1).reshape(len(rows), channels, size, size)


def noises(images: Array, factors: Iterable[Array]) -> Iterator[Array]:
    """Yield what is left of real images, or of noise, behind each filter of `half_plane`."""
    spectrum = np.fft.rfft2(images)
    for factor in factors:
        yield np.fft.irfft2(spectrum * factor, s=images.shape[-2:])
