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

from vitscope.files.tensors import TensorFile
from vitscope.measures.fourier.compute import FLOOR, amplitude_table
from vitscope.measures.intervals import TAILS, bootstrap_means
from vitscope.measures.slices import measure_pieces

Array = npt.NDArray[Any]

BANDS = ("low", "middle", "high")
# Frequencies are roots of sums of squares: one on an edge must not fall off it.
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
        steps = max(height, width) / 2
        self._rings = np.ceil(frequency * steps - 0.5 - _ROUNDING).astype(int)
        counted = np.bincount(self._bands, self._counts, len(BANDS) + 1)
        self.components = counted[: len(BANDS)].astype(np.int32)
        self._in_ring = np.bincount(self._rings, self._counts)[: int(steps) + 1]

    def band_variance(self, power: Array) -> Array:
        """Return the unbiased variance in each band from squared amplitudes.

        By Parseval's theorem they add up to the variance of the map. A single pixel has none: 0.
        """
        of_band = np.bincount(self._bands, self._counts * power, len(BANDS) + 1)[: len(BANDS)]
        result: Array = of_band / (self.pixels * max(1, self.pixels - 1))
        return result

    def ring_means(self, values: Array) -> Array:
        """Return the mean over each ring of integer radius, from 0 to the end of the longer axis.

        Radii are in steps of the longer axis and rounded, halves down; what lies in the corners
        beyond the last ring is left out.
        """
        sums = np.bincount(self._rings, self._counts * values)[: len(self._in_ring)]
        result: Array = sums / self._in_ring
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
    first = maps[:, :1, :1]
    # Far from zero, frequency 0 would leave the others little precision, and a constant map noise.
    transform = rfft2(maps - first, overwrite_x=True).reshape(channels, -1)
    transform[:, 0] += np.float32(height * width) * first[:, 0, 0]
    parts = transform.view(np.float32)
    parts *= parts
    power: Array = parts[:, ::2] + parts[:, 1::2]
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
    sizes = {name: latents.shape(name)[2:] for name in latents.names}
    planes = {name: Plane(height, width, edges) for name, (height, width) in sizes.items()}
    measures = {name: WholeSpectrum(plane, radial) for name, plane in planes.items()}
    measured = measure_pieces(latents, measures, first_image, threads)
    bands = [
        np.where(planes[name].pixels > 1, values[:, : len(BANDS)], np.nan)
        for name, values in measured.items()
    ]
    rings = [values[:, len(BANDS) :].astype(np.float32) for values in measured.values()]
    return _band_table(bands, first_image), amplitude_table(dict(enumerate(rings)), first_image)


def _band_table(bands: Sequence[Array], first_image: int) -> pd.DataFrame:
    images = np.arange(first_image, first_image + len(bands[0]))
    return pd.DataFrame(
        {
            "index": np.repeat(np.arange(len(bands)), bands[0].size),
            "image": np.tile(np.repeat(images, len(BANDS)), len(bands)),
            "band": np.tile(BANDS, len(images) * len(bands)),
            "variance": np.concatenate(bands).ravel(),
        }
    )


def _shares(variance: Array) -> Array:
    """Return the share of each band, the last axis, of all; NaN where there is no variance."""
    total = variance.sum(axis=-1, keepdims=True)
    result: Array = np.divide(variance, total, out=np.full_like(variance, np.nan), where=total > 0)
    return result


def _share_interval(variance: Array, resamples: int, seed: int) -> Array:
    """Return the ends of the 95 % intervals of the shares from variances (images, points, bands).

    They are shares of the mean over the images of a resample. A single image has none: NaN.
    """
    images, *shape = variance.shape
    if images == 1:
        return np.full((2, *shape), np.nan)
    means = bootstrap_means(variance.reshape(images, -1), resamples, seed)
    ends: Array = np.percentile(_shares(means.reshape(-1, *shape)), TAILS, axis=0)
    return ends


def merge(
    blocks: pd.DataFrame,
    shards: Iterable[pd.DataFrame],
    edges: Sequence[float],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Merge the shards of one model: mean over images, share of each band and its 95 % interval.

    `blocks` are the model's cut points. A band without components has a variance of 0. Shares are
    of bands with components, where there are two of these or more.
    """
    per_image = pd.concat(shards).pivot(index="image", columns=["index", "band"], values="variance")
    points = blocks.sort_values("index")
    columns = pd.MultiIndex.from_product([points["index"], BANDS])
    shape = (len(per_image), len(points), len(BANDS))
    variance = per_image.sort_index()[columns].to_numpy(np.float64).reshape(shape)
    sizes = zip(points["height"], points["width"], strict=True)
    components = np.stack([Plane(height, width, edges).components for height, width in sizes])
    mean = variance.mean(axis=0)
    shares = np.stack([_shares(mean), *_share_interval(variance, resamples, seed)])
    # The only band of a map has all of its variance, which says nothing of the map.
    defined = (components > 0) & ((components > 0).sum(axis=1, keepdims=True) > 1)
    shares[:, ~defined] = np.nan
    means = pd.DataFrame(
        {
            "index": columns.get_level_values(0),
            "images": len(per_image),
            "band": columns.get_level_values(1),
            "above": np.tile([0, *edges], len(points)),
            "up_to": np.tile([*edges, np.sqrt(2)], len(points)),
            "components": components.ravel(),
            "variance": mean.ravel(),
            **dict(zip(("share", "ci_low", "ci_high"), shares.reshape(3, -1), strict=True)),
        }
    )
    return blocks.merge(means, on="index", validate="one_to_many")
