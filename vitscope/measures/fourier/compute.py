from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.intervals import RESAMPLED
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import ratio, spread, spread_of
from vitscope.measures.fourier.spectra import (
    BANDS,
    HalfDiagonal,
    LongDiagonal,
    Plane,
    diagonal_steps,
)
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.slices import measure_slices


class FourierTransforms:
    """Measures the maps at one cut point: the diagonal, bands if given `edges`, rings if `radial`.

    Rings are measured only if `edges` are given too.
    """

    def __init__(self, shape: tuple[int, ...], radial: bool, edges: Sequence[float] | None) -> None:
        channels, height, width = shape
        self.steps = diagonal_steps(min(height, width))
        self.pixels = height * width
        self._measures: list[HalfDiagonal | LongDiagonal | Plane] = [
            HalfDiagonal(channels, height) if height == width else LongDiagonal(height, width)
        ]
        if edges is not None:
            self._measures.append(Plane(height, width, edges, radial))
        self._bands = len(BANDS) if edges is not None else 0

    def __call__(self, maps: Any) -> Any:
        """Return a row for each image of `maps` (N, C, H, W): the diagonal, bands, then rings."""
        if not isinstance(maps, np.ndarray):
            import torch

            return torch.cat([measure.of_tensor(maps) for measure in self._measures], dim=1)
        found = [measure(maps).astype(np.float64) for measure in self._measures]
        return np.concatenate(found, axis=1)

    def named(self, values: Array) -> Iterator[tuple[str, Array]]:
        """Yield the name of each quantity and its columns of `values`, (N, steps).

        Bands of maps with one pixel are NaN.
        """
        after = self.steps + self._bands
        nothing = np.full((len(values), 1), np.nan)
        yield "diagonal", values[:, : self.steps]
        if self._bands:
            for band, column in zip(BANDS, values[:, self.steps : after].T, strict=True):
                yield band, column[:, None] if self.pixels > 1 else nothing
        if values.shape[1] > after:
            # Round to single precision, which the diagonal has too.
            yield "radial", values[:, after:].astype(np.float32)


def _rows_of_fourier_quantity(
    index: int, quantity: str, values: Array, first_image: int
) -> pd.DataFrame:
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
        name: FourierTransforms(latents.shape(name)[1:], radial, edges) for name in latents.names
    }
    measured = measure_slices(given, transforms, on_gpu=True)
    rows = [
        _rows_of_fourier_quantity(index, quantity, values, given.first_image)
        for index, name in enumerate(latents.names)
        for quantity, values in transforms[name].named(measured[name])
    ]
    return pd.concat(rows, ignore_index=True)


# The quantities of a part that are log amplitudes; the others are variances in bands.
AMPLITUDES = ("diagonal", "radial")
_RESAMPLED = f"delta_log_amplitude{RESAMPLED}"


def _mean_amplitudes(per_image: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    """Average each log amplitude, and its difference from the one at frequency 0, over images.

    `per_image` has a row for each image, and a column for each cut point (`index`) and `step`.
    """
    per_image = per_image.sort_index().sort_index(axis=1)
    values = per_image.to_numpy(np.float64)
    steps = per_image.columns.get_level_values("step").to_numpy()
    at_zero = np.flatnonzero(steps == 0)[np.cumsum(steps == 0) - 1]
    difference = values - values[:, at_zero]
    return pd.DataFrame(
        {
            "index": per_image.columns.get_level_values("index"),
            "step": steps,
            "images": len(values),
            "log_amplitude": values.mean(axis=0),
            "delta_log_amplitude": difference.mean(axis=0),
            **spread(difference, resamples, seed).columns("delta_log_amplitude"),
        }
    )


def merge_fourier(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    # Reshape each table before reading the next: all at once, they take five times the memory.
    per_image = pd.concat(
        table[table["quantity"].isin(AMPLITUDES)].pivot(
            index="image", columns=["quantity", "index", "step"], values="value"
        )
        for table in parts.tables
    )
    merged = []
    for quantity in AMPLITUDES:
        if quantity in per_image:
            means = _mean_amplitudes(pd.DataFrame(per_image[quantity]), resamples, seed)
            points = parts.cut_points.merge(means, on="index", validate="one_to_many")
            if quantity == "radial":
                largest = points[["height", "width"]].max(axis=1) / 2
            else:
                # The authors label the last step 1.0 pi, whatever its true frequency is.
                largest = points.groupby("index")["step"].transform("max").clip(lower=1)
            frequency = points["step"] / largest
            merged.append(points.drop(columns="step").assign(measure=quantity, frequency=frequency))
    table = pd.concat(merged, ignore_index=True)
    # Keep resamples only at the highest frequency of the diagonal, which claims are about.
    claimed = (table["measure"] == "diagonal") & (table["frequency"] == 1)
    return table.assign(**{_RESAMPLED: table[_RESAMPLED].where(claimed, None)})


def _shares_of_bands(variance: Array) -> Array:
    """Return the share of each band in the sum over the last axis; NaN if that sum is 0."""
    return ratio(variance, variance.sum(axis=-1, keepdims=True))


def merge_spectrum(parts: Parts, edges: Sequence[float], resamples: int, seed: int) -> pd.DataFrame:
    """Return for each cut point and band the mean variance over images, the share and its interval.

    A band without components has a variance of 0 and no share. If only one band has components, it
    has no share either.
    """
    bands = (table[table["quantity"].isin(BANDS)] for table in parts.tables)
    per_image = pd.concat(bands).pivot(index="image", columns=["index", "quantity"], values="value")
    points = parts.cut_points.sort_values("index")
    columns = pd.MultiIndex.from_product([points["index"], BANDS])
    shape = (len(per_image), len(points), len(BANDS))
    variances = per_image.sort_index()[columns].to_numpy(np.float64)
    sizes = zip(points["height"], points["width"], strict=True)
    components = np.stack([Plane(height, width, edges).components for height, width in sizes])
    mean = variances.reshape(shape).mean(axis=0)
    # In each resample, divide means over images, as for the share itself.
    ends = spread_of(
        lambda m: _shares_of_bands(m.reshape(-1, *shape[1:])), variances, resamples, seed
    )
    shares = np.stack([_shares_of_bands(mean), ends.low, ends.high])
    # If only one band has components, leave out its share, which is 1 for any map.
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
    return parts.cut_points.merge(means, on="index", validate="one_to_many")
