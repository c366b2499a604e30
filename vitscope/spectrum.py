"""The whole two-dimensional spectrum of feature maps: its bands, and its mean over rings.

A frequency of the plane is the length of its vector: 1, in units of pi, where an axis ends, and up
to the root of 2 in the corners.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.fft import fftfreq, rfft2, rfftfreq

from vitscope.fourier import FLOOR, amplitude_table
from vitscope.intervals import TAILS, bootstrap_means
from vitscope.pieces import measure_pieces
from vitscope.tensorfile import TensorFile

Array = npt.NDArray[Any]

BANDS = ("low", "middle", "high")
# Frequencies are sums of squares of fractions: one on the edge of a band must not fall off it.
_ROUNDING = 1e-9


class Plane:
    """The components of the real transform of a map: their bands, rings and how often they count.

    `edges` are where the middle band begins and ends. A component on an edge belongs to the band
    below it; frequency 0 belongs to none.
    """

    def __init__(self, height: int, width: int, edges: Sequence[float]) -> None:
        self.pixels = height * width
        # The transform of real maps leaves out half of the plane: those are conjugates.
        columns = np.arange(width // 2 + 1)
        twice = np.where((columns == 0) | (2 * columns == width), 1, 2)
        self._counts = np.tile(twice, height)
        frequency = 2 * np.hypot(fftfreq(height)[:, None], rfftfreq(width)).ravel()
        self._bands = np.searchsorted(np.asarray(edges) + _ROUNDING, frequency)
        self._bands[0] = len(BANDS)
        largest = max(height, width)
        self._rings = np.rint(frequency * largest / 2).astype(int)
        self._last_ring = largest // 2
        self.components = np.bincount(self._bands, self._counts, len(BANDS) + 1)[: len(BANDS)]
        self._in_ring = np.bincount(self._rings, self._counts)

    def band_variance(self, power: Array) -> Array:
        """Return the unbiased variance in each band from squared amplitudes.

        By Parseval's theorem they add up to the variance of the map. A single pixel has none: 0.
        """
        of_band = np.bincount(self._bands, self._counts * power, len(BANDS) + 1)[: len(BANDS)]
        result: Array = of_band / (self.pixels * max(1, self.pixels - 1))
        return result

    def ring_means(self, values: Array) -> Array:
        """Return the mean over each ring of integer radius, from 0 to the end of the longer axis.

        In steps of the longer axis; what lies in the corners beyond the last ring is left out.
        """
        means = np.bincount(self._rings, self._counts * values) / self._in_ring
        result: Array = means[: self._last_ring + 1]
        return result


class WholeSpectrum:
    """Measure the variance in each band, and if wanted the mean log amplitude on each ring."""

    def __init__(self, plane: Plane, radial: bool) -> None:
        self._plane = plane
        self._radial = radial

    def __call__(self, maps: Array) -> Array:
        """Return the bands of each image of (N, C, H, W), then its rings; means over channels."""
        # One image at a time: how a transform is vectorized depends on how many there are.
        return np.stack([self._of_image(image) for image in maps])

    def _of_image(self, maps: Array) -> Array:
        power = _power(maps)
        bands = self._plane.band_variance(power.mean(axis=0, dtype=np.float64))
        if not self._radial:
            return bands
        np.sqrt(power, out=power)
        power += FLOOR
        amplitude = np.log(power, out=power).mean(axis=0, dtype=np.float64)
        return np.concatenate([bands, self._plane.ring_means(amplitude)])


def _power(maps: Array) -> Array:
    """Return the squared amplitudes of the real transform of each map, (C, components)."""
    channels, height, width = maps.shape
    sums = np.vecdot(maps.reshape(channels, -1), np.ones(height * width, np.float32))
    # Far from zero, the mean would leave little precision to the rest.
    centred = maps - (sums / np.float32(height * width))[:, None, None]
    transform = rfft2(centred, overwrite_x=True).reshape(channels, -1)
    parts = transform.view(np.float32)
    parts *= parts
    power: Array = parts[:, ::2] + parts[:, 1::2]
    power[:, 0] = sums * sums
    return power


def shard_spectrum(
    latents: TensorFile,
    first_image: int,
    edges: Sequence[float],
    radial: bool,
    threads: int = 1,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the band variances and the radial log amplitudes of every image of a shard.

    `first_image` is the position of the shard's first image among those measured. Without `radial`
    the second table is empty. Maps of a single pixel have no variance: NaN.
    """
    planes = {n: Plane(*latents.array(n).shape[2:], edges) for n in latents.names}
    measures = {name: WholeSpectrum(plane, radial) for name, plane in planes.items()}
    measured = list(measure_pieces(latents, measures, first_image, threads).values())
    ...


def merge(
    blocks: pd.DataFrame,
    shards: Iterable[pd.DataFrame],
    edges: Sequence[float],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    ...
