"""The Fourier amplitudes of square maps along the half-diagonal, as the authors measure them."""

from typing import TYPE_CHECKING

import numpy as np

from vitscope.files.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

# The authors add it to the amplitude before they take the logarithm.
FLOOR = np.float32(1e-6)

# OpenBLAS computes a product of at most this many multiplications in the thread that asks for it.
# Threads of its own would get in the way of the caller's threads and change the order of sums.
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


def _wrapped_sums(size: int, rows: int, shift: int) -> Array:
    """Return the matrix that sums `rows` rows of a map, each wrapped `shift` further than the last.

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
            wrapped = _wrapped_sums(size, rows, shift=size // left)
            left //= rows
            # How many sums of each image stand in one product.
            together = _divisor(channels * left, _PRODUCT // wrapped.size)
            self._steps.append((wrapped, together))

    def _sums(self, maps: Array) -> Array:
        """Return the sums along anti-diagonals, (N, groups, size, channels of a group)."""
        sums = maps
        for wrapped, together in self._steps[:-1]:
            sums = np.matmul(sums.reshape(len(maps), -1, together, wrapped.shape[1]), wrapped.T)
        wrapped, together = self._steps[-1]
        rows = sums.reshape(len(maps), -1, together, wrapped.shape[1])
        result: Array = np.matmul(wrapped, rows.swapaxes(2, 3))
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

    def of_tensor(self, maps: "Tensor") -> "Tensor":
        """Return the same of a tensor, wherever it lies, in double precision."""
        import torch

        size = maps.shape[-1]
        turns = np.outer(np.arange(diagonal_steps(size)), np.arange(size)) / size
        waves = torch.from_numpy(np.exp(-2j * np.pi * turns)).to(maps.device)
        # Without it, what is left of a constant map is zero.
        first = maps[:, :, :1, :1].double()
        rows = torch.einsum("nchw,kw->nchk", (maps.double() - first).to(waves.dtype), waves)
        component = torch.einsum("nchk,kh->nck", rows, waves)
        component[:, :, 0] += size**2 * first[:, :, 0, 0]
        return (component.abs() + float(FLOOR)).log().mean(1)
