"""What is measured of Fourier-transformed feature maps: log amplitudes, and variances in bands.

The log amplitudes along the half-diagonal are what the authors of the paper measure. Those on rings
and the variances in bands of frequency come from the transform of the whole map.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.fourier.diagonal import HalfDiagonal, diagonal_steps
from vitscope.measures.fourier.plane import BANDS, LongDiagonal, Plane, WholeSpectrum
from vitscope.measures.given import OnLatents
from vitscope.measures.slices import measure_slices


class Transforms:
    """Measure the maps at one cut point.

    Bands are measured if there are `edges` between them, and rings if `radial` is set too.
    """

    def __init__(self, shape: tuple[int, ...], radial: bool, edges: Sequence[float] | None) -> None:
        channels, height, width = shape
        self.steps = diagonal_steps(min(height, width))
        self.pixels = height * width
        self._measures: list[HalfDiagonal | LongDiagonal | WholeSpectrum] = [
            HalfDiagonal(channels, height) if height == width else LongDiagonal(height, width)
        ]
        if edges is not None:
            self._measures.append(WholeSpectrum(Plane(height, width, edges), radial))
        self._bands = len(BANDS) if edges is not None else 0

    def __call__(self, maps: Any) -> Any:
        """Return a row for each image of (N, C, H, W): its diagonal, its bands, its rings.

        It takes an array or a tensor, and returns the same.
        """
        if not isinstance(maps, np.ndarray):
            import torch

            return torch.cat([measure.of_tensor(maps) for measure in self._measures], dim=1)
        found = [measure(maps).astype(np.float64) for measure in self._measures]
        return np.concatenate(found, axis=1)

    def named(self, values: Array) -> Iterator[tuple[str, Array]]:
        """Yield each quantity by its name, (N, steps).

        Bands of a single pixel are NaN.
        """
        after = self.steps + self._bands
        nothing = np.full((len(values), 1), np.nan)
        yield "diagonal", values[:, : self.steps]
        if self._bands:
            for band, column in zip(BANDS, values[:, self.steps : after].T, strict=True):
                yield band, column[:, None] if self.pixels > 1 else nothing
        if values.shape[1] > after:
            # In single precision, as the diagonal is measured.
            yield "radial", values[:, after:].astype(np.float32)


def _rows(index: int, quantity: str, values: Array, first_image: int) -> pd.DataFrame:
    images, steps = values.shape
    return pd.DataFrame(
        {
            "index": index,
            "image": np.repeat(np.arange(first_image, first_image + images), steps),
            "quantity": quantity,
            "step": np.tile(np.arange(steps), images),
            "value": values.ravel(),
        }
    )


def measure_fourier(given: OnLatents, radial: bool, edges: Sequence[float] | None) -> pd.DataFrame:
    latents = given.latents
    transforms = {
        name: Transforms(latents.shape(name)[1:], radial, edges) for name in latents.names
    }
    measured = measure_slices(given, transforms, on_gpu=True)
    rows = [
        _rows(index, quantity, values, given.first_image)
        for index, name in enumerate(latents.names)
        for quantity, values in transforms[name].named(measured[name])
    ]
    return pd.concat(rows, ignore_index=True)
