"""The two-dimensional spectrum of feature maps: its bands, its mean over rings, its diagonal.

The frequency of a component is the length of its frequency vector, in units of pi: 1 at the end of
an axis, and up to the root of 2 in the corners.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import fftfreq, rfft2, rfftfreq

from vitscope.files.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

# The authors add this to an amplitude before taking its logarithm.
FLOOR = np.float32(1e-6)

# Up to this number of multiplications, OpenBLAS computes a product in a single thread, and so
# always in the same order.
_PRODUCT = 1 << 18
_MAPS_IN_A_PRODUCT = 16


def diagonal_steps(size: int) -> int:
    """Return the number of frequencies on the half-diagonal of a square map.

    The authors shift the transform by half of the size, rounded down, and take the diagonal from
    that index on: F(k, k) from k = 0 to size / 2 - 1, or to (size - 1) / 2 where the size is odd.
    """
    return size - size // 2


def _divisor_up_to(number: int, most: int) -> int:
    """Return the largest divisor of `number` from 2 to `most`, or else its smallest above 1.

    Return 1 for a `number` of 1.
    """
    divisors = [divisor for divisor in range(1, number + 1) if number % divisor == 0]
    return max((d for d in divisors[1:] if d <= most), default=divisors[:2][-1])


def _wrapped_sum_matrix(size: int, rows: int, shift: int) -> Array:
    """Return the matrix (size, rows * size) that sums rows, with row r rolled by r * `shift`."""
    row, column = np.divmod(np.arange(rows * size), size)
    return np.asarray((column + shift * row) % size == np.arange(size)[:, None], np.float32)


class HalfDiagonal:
    """Measures the log amplitudes along the half-diagonal of square maps.

    F(k, k) is the one-dimensional transform of the sums along anti-diagonals: all pixels whose row
    and column have the same sum, modulo the size, have the same phase. This avoids transforming the
    whole map.
    """

    def __init__(self, channels: int, size: int) -> None:
        angles = 2 * np.pi * np.outer(np.arange(diagonal_steps(size)), np.arange(size)) / size
        self._waves = np.concatenate([np.cos(angles), np.sin(angles)]).astype(np.float32)
        self._steps: list[tuple[Array, int]] = []
        left = size
        while not self._steps or left > 1:
            rows = _divisor_up_to(left, _PRODUCT // (_MAPS_IN_A_PRODUCT * size**2))
            wrapped = _wrapped_sum_matrix(size, rows, shift=size // left)
            left //= rows
            # The number of sums over rows that one product computes for each image.
            together = _divisor_up_to(channels * left, _PRODUCT // wrapped.size)
            self._steps.append((wrapped, together))

    def _anti_diagonal_sums(self, maps: Array) -> Array:
        """Return sums along anti-diagonals, (N, groups of channels, size, channels of a group)."""
        sums = maps
        for wrapped, together in self._steps[:-1]:
            sums = np.matmul(sums.reshape(len(maps), -1, together, wrapped.shape[1]), wrapped.T)
        wrapped, together = self._steps[-1]
        rows = sums.reshape(len(maps), -1, together, wrapped.shape[1])
        result: Array = np.matmul(wrapped, rows.swapaxes(2, 3))
        return result

    def __call__(self, maps: Array) -> Array:
        """Return the log amplitudes of each image of `maps` (N, C, H, W), mean over channels."""
        size = maps.shape[-1]
        sums = self._anti_diagonal_sums(maps)
        first = sums[:, :, 0].copy()
        sums -= first[:, :, None]
        # Set rounding errors to 0, so that a constant map has no frequency but 0.
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
        """Return the log amplitudes of a tensor on any device, in double precision."""
        import torch

        size = maps.shape[-1]
        turns = np.outer(np.arange(diagonal_steps(size)), np.arange(size)) / size
        waves = torch.from_numpy(np.exp(-2j * np.pi * turns)).to(maps.device)
        # Subtract the first value, so that a constant map becomes exactly zero.
        first = maps[:, :, :1, :1].double()
        rows = torch.einsum("nchw,kw->nchk", (maps.double() - first).to(waves.dtype), waves)
        component = torch.einsum("nchk,kh->nck", rows, waves)
        component[:, :, 0] += size**2 * first[:, :, 0, 0]
        return (component.abs() + float(FLOOR)).log().mean(1)


BANDS = ("low", "middle", "high")
# A tolerance at the edges of bands and rings, since frequencies are rounded.
_ROUNDING = 1e-9


class Plane:
    """Measures the variance in each band and, if `radial`, the mean log amplitude on each ring.

    The middle band begins and ends at `edges`. A component on an edge belongs to the band below it;
    frequency 0 belongs to none. The radius of a component is counted in steps of the longer axis
    and rounded, with halves rounded down; rings have the radii from 0 to the end of that axis.
    Components in the corners beyond the last ring are left out.
    """

    def __init__(
        self, height: int, width: int, edges: Sequence[float], radial: bool = False
    ) -> None:
        self._radial = radial
        pixels = height * width
        # Divided by this, bands add up to the variance of the map, by Parseval's theorem. The bands
        # of a map of one pixel are 0: do not divide them by 0.
        self._variance_of = pixels * max(1, pixels - 1)
        # The transform of a real map leaves out one of two conjugate components: the other counts
        # twice.
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

    def __call__(self, maps: Array) -> Array:
        """Return (N, bands + rings): energies of `maps` (N, C, H, W), averaged over channels."""
        # Transform one image at a time: the number of images changes the vectorization, and so
        # the rounding.
        return np.stack([self._of_image(image) for image in maps])

    def of_tensor(self, maps: "Tensor") -> "Tensor":
        """Return what `__call__` does, for a tensor on any device; sums are matrix products."""
        import torch

        power = _power_in_plane_of_tensor(maps)
        bands = (self._bands[:, None] == np.arange(len(BANDS))) * self._counts[:, None]
        of_bands = torch.from_numpy(bands / self._variance_of)
        found = [power.mean(1) @ of_bands.to(power.device)]
        if self._radial:
            rings = self._rings[:, None] == np.arange(len(self._in_ring))
            of_rings = torch.from_numpy(rings * self._counts[:, None] / self._in_ring)
            amplitude = (power.sqrt() + float(FLOOR)).log().mean(1)
            found.append(amplitude @ of_rings.to(power.device))
        return torch.cat(found, dim=1)

    def _of_image(self, maps: Array) -> Array:
        power = _power_in_plane(maps)
        counted = self._counts * power.mean(axis=0, dtype=np.float64)
        of_bands = np.bincount(self._bands, counted, len(BANDS) + 1)[: len(BANDS)]
        bands = of_bands / self._variance_of
        if not self._radial:
            return bands
        np.sqrt(power, out=power)
        power += FLOOR
        amplitude = np.log(power, out=power).mean(axis=0, dtype=np.float64)
        sums = np.bincount(self._rings, self._counts * amplitude)[: len(self._in_ring)]
        return np.concatenate([bands, sums / self._in_ring])


class LongDiagonal:
    """Measures the log amplitudes along the half-diagonal of maps that are not square.

    Both sides have the frequencies of the shorter side, in units of pi. If a frequency falls
    between two components of the longer side, the logarithm of the amplitude is interpolated.
    """

    def __init__(self, height: int, width: int) -> None:
        shorter = min(height, width)
        steps = np.arange(diagonal_steps(shorter))
        (row, down), (column, right) = (divmod(steps * side, shorter) for side in (height, width))
        across = width // 2 + 1
        self._before = row * across + column
        self._behind = (row + (down > 0)) * across + column + (right > 0)
        # On the shorter side, every frequency belongs to a component, so `down` or `right` is 0.
        self._share = (down + right) / shorter

    def __call__(self, maps: Array) -> Array:
        """Return the log amplitudes of each image of `maps` (N, C, H, W), mean over channels."""
        return np.stack([self._of_image(image) for image in maps])

    def of_tensor(self, maps: "Tensor") -> "Tensor":
        """Return what `__call__` does, for a tensor on any device, in double precision."""
        import torch

        logs = (_power_in_plane_of_tensor(maps).sqrt() + float(FLOOR)).log().mean(1)
        share = torch.from_numpy(self._share).to(maps.device)
        return logs[:, self._before].lerp(logs[:, self._behind], share)

    def _of_image(self, maps: Array) -> Array:
        power = _power_in_plane(maps)
        before, behind = (
            np.log(np.sqrt(power[:, chosen]) + FLOOR).mean(axis=0, dtype=np.float64)
            for chosen in (self._before, self._behind)
        )
        result: Array = before + self._share * (behind - before)
        return result


def _power_in_plane(maps: Array) -> Array:
    """Return the squared amplitudes of the real transform of each map, (C, components)."""
    channels, height, width = maps.shape
    first = maps[:, :1, :1]
    # Subtract the first value: a mean far from zero would cost precision, and turn constant maps
    # into noise.
    transform = rfft2(maps - first, overwrite_x=True).reshape(channels, -1)
    transform[:, 0] += np.float32(height * width) * first[:, 0, 0]
    parts = transform.view(np.float32)
    parts *= parts
    power: Array = parts[:, ::2] + parts[:, 1::2]
    return power


def _power_in_plane_of_tensor(maps: "Tensor") -> "Tensor":
    """Return the squared amplitudes of a tensor, (N, C, components), in double precision."""
    import torch

    first = maps[:, :, :1, :1].double()
    transform = torch.fft.rfft2(maps.double() - first).flatten(2)
    transform[:, :, 0] += maps[0, 0].numel() * first[:, :, 0, 0]
    power: Tensor = transform.real.square() + transform.imag.square()
    return power
