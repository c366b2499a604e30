"""Log amplitudes of the Fourier-transformed feature maps, from frequency 0 to the highest.

Along the half-diagonal, as the authors of the paper measure them, or as means over the rings of a
whole transform, which vitscope/spectrum.py takes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.files.tensors import TensorFile
from vitscope.measures.intervals import interval
from vitscope.measures.slices import measure_pieces

Array = npt.NDArray[Any]

# The authors add it to the amplitude before they take the logarithm.
FLOOR = np.float32(1e-6)

# OpenBLAS computes a product of at most this many multiplications in the thread that asks for it.
# Threads of its own would get in the way of those of the caller and change the order of sums.
_PRODUCT = 1 << 18
_MAPS_IN_A_PRODUCT = 16


def diagonal_steps(size: int) -> int:
    """Return how many frequencies the half-diagonal of a square map has.

    The authors shift the transform by half of the size, rounded down, and take the diagonal from
    that index on: F(k, k) from k = 0 to size / 2 - 1, or to (size - 1) / 2 where the size is odd.
    """
    return size - size // 2


def _divisor(number: int, most: int) -> int:
    """Return the largest divisor up to `most`, or the smallest other than 1 where that is 1."""
    divisors = [divisor for divisor in range(1, number + 1) if number % divisor == 0]
    return max((d for d in divisors[1:] if d <= most), default=divisors[:2][-1])


def _adder(size: int, rows: int, shift: int) -> Array:
    """Return what adds up `rows` rows of a map, each wrapped `shift` further than the one before.

    It is (size, rows * size), of zeros and ones.
    """
    row, column = np.divmod(np.arange(rows * size), size)
    return np.asarray((column + shift * row) % size == np.arange(size)[:, None], np.float32)


def _waves(size: int) -> Array:
    """Return the cosines, then the sines, of the frequencies of the half-diagonal."""
    angles = 2 * np.pi * np.outer(np.arange(diagonal_steps(size)), np.arange(size)) / size
    return np.concatenate([np.cos(angles), np.sin(angles)]).astype(np.float32)


class HalfDiagonal:
    """Measure the log amplitudes along the half-diagonal of square maps.

    F(k, k) is the one-dimensional transform of the sums along the anti-diagonals, which wrap
    around: all pixels whose row and column have the same sum, modulo the size, share its phase. So
    no map is transformed as a whole.
    """

    def __init__(self, channels: int, size: int) -> None:
        self._waves = _waves(size)
        self._steps: list[tuple[Array, int]] = []
        left = size
        while not self._steps or left > 1:
            rows = _divisor(left, _PRODUCT // (_MAPS_IN_A_PRODUCT * size**2))
            adder = _adder(size, rows, shift=size // left)
            left //= rows
            # How many sums of each image stand in one product.
            together = _divisor(channels * left, _PRODUCT // adder.size)
            self._steps.append((adder, together))

    def _sums(self, maps: Array) -> Array:
        """Return the sums along anti-diagonals, (N, groups, size, channels of a group)."""
        sums = maps
        for adder, together in self._steps[:-1]:
            sums = np.matmul(sums.reshape(len(maps), -1, together, adder.shape[1]), adder.T)
        adder, together = self._steps[-1]
        rows = sums.reshape(len(maps), -1, together, adder.shape[1])
        result: Array = np.matmul(adder, rows.swapaxes(2, 3))
        return result

    def __call__(self, maps: Array) -> Array:
        """Return the log amplitudes of each image of (N, C, H, W), mean over channels."""
        size = maps.shape[-1]
        sums = self._sums(maps)
        first = sums[:, :, 0].copy()
        sums -= first[:, :, None]
        # A constant map has frequency 0 alone: its sums must not differ by their rounding.
        rounding = size * np.finfo(np.float32).eps * np.abs(first)
        np.copyto(sums, 0, where=np.abs(sums) <= rounding[:, :, None])
        parts = np.matmul(self._waves, sums)
        parts[:, :, 0] += size * first
        parts *= parts
        steps = len(self._waves) // 2
        amplitude = parts[:, :, :steps] + parts[:, :, steps:]
        np.sqrt(amplitude, out=amplitude)
        amplitude += FLOOR
        result: Array = np.log(amplitude, out=amplitude).mean(axis=3).mean(axis=1)
        return result


def amplitude_table(values: Mapping[int, Array], first_image: int) -> pd.DataFrame:
    """Return the log amplitudes of a shard as a table; `values` (images, steps) by cut point."""
    columns = ("index", "image", "step", "log_amplitude")
    parts: dict[str, list[Array]] = {column: [] for column in columns}
    for index, amplitudes in values.items():
        images, steps = amplitudes.shape
        parts["index"].append(np.full(images * steps, index, np.int32))
        parts["image"].append(np.repeat(np.arange(first_image, first_image + images), steps))
        parts["step"].append(np.tile(np.arange(steps, dtype=np.int32), images))
        parts["log_amplitude"].append(amplitudes.ravel())
    return pd.DataFrame({column: np.concatenate(part) for column, part in parts.items()})


def shard_diagonal(latents: TensorFile, first_image: int, threads: int = 1) -> pd.DataFrame:
    """Return the log amplitudes along the half-diagonal for every image of a shard.

    `first_image` is the position of the shard's first image among those measured. Maps that are not
    square have no diagonal: NaN.
    """
    shapes = {name: latents.shape(name) for name in latents.names}
    measures = {
        name: HalfDiagonal(channels, height)
        for name, (_, channels, height, width) in shapes.items()
        if height == width
    }
    measured = measure_pieces(latents, measures, first_image, threads)
    values = {
        index: measured.get(name, np.full((shapes[name][0], 1), np.nan, np.float32))
        for index, name in enumerate(latents.names)
    }
    return amplitude_table(values, first_image)


def _frequencies(measure: str, points: pd.DataFrame) -> pd.Series:
    """Return the frequency of every step, in units of pi; `points` has the sizes of the maps."""
    if measure == "radial":
        return 2 * points["step"] / points[["height", "width"]].max(axis=1)
    # The authors call the last step 1.0 pi, whichever it is.
    return points["step"] / points.groupby("index")["step"].transform("max").clip(lower=1)


def _means(shards: Iterable[pd.DataFrame], resamples: int, seed: int) -> pd.DataFrame:
    # Shard by shard: a row per image is a fifth of the memory of a row per value.
    per_image = pd.concat(
        shard.pivot(index="image", columns=["index", "step"], values="log_amplitude")
        for shard in shards
    )
    per_image = per_image.sort_index().sort_index(axis=1)
    values = per_image.to_numpy(np.float64)
    steps = per_image.columns.get_level_values("step").to_numpy()
    at_zero = np.flatnonzero(steps == 0)[np.cumsum(steps == 0) - 1]
    difference = values - values[:, at_zero]
    low, high = interval(difference, resamples, seed)
    return pd.DataFrame(
        {
            "index": per_image.columns.get_level_values("index"),
            "step": steps,
            "images": len(values),
            "log_amplitude": values.mean(axis=0),
            "delta_log_amplitude": difference.mean(axis=0),
            "ci_low": low,
            "ci_high": high,
        }
    )


def merge(
    blocks: pd.DataFrame,
    shards: Mapping[str, Iterable[pd.DataFrame]],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Merge the shards of every measure of one model: mean over images and a 95 % interval.

    `blocks` are the model's cut points, `shards` the tables of each measure.
    """
    merged = []
    for measure, tables in shards.items():
        means = _means(tables, resamples, seed)
        points = blocks.merge(means, on="index", validate="one_to_many")
        frequency = _frequencies(measure, points)
        merged.append(points.drop(columns="step").assign(measure=measure, frequency=frequency))
    return pd.concat(merged, ignore_index=True)
