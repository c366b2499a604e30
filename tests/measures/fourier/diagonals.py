"""The diagonal of a transform as the authors take it, for tests to compare with."""

import numpy as np


def amplitudes(maps: np.ndarray) -> np.ndarray:
    """Return |F| along the diagonal as the authors take it, with numpy and in double precision."""
    size = maps.shape[-1]
    half = int(size / 2)
    transform = np.abs(np.fft.fft2(maps.astype(np.float64)))
    centred = np.roll(transform, (half, half), axis=(-2, -1))
    return np.diagonal(centred, axis1=-2, axis2=-1)[..., half:]


def log_amplitudes(maps: np.ndarray) -> np.ndarray:
    """Return their logarithms, mean over channels."""
    return np.log(amplitudes(maps) + 1e-6).mean(axis=1)


def long_log_amplitudes(maps: np.ndarray) -> np.ndarray:
    """Return them along the diagonal of any map, interpolated along its longer side."""
    logs = np.log(np.abs(np.fft.fft2(maps.astype(np.float64))) + 1e-6).mean(axis=1)
    shorter, longer = sorted(maps.shape[-2:])
    # The rows of the longer side, from frequency 0 of the shorter one on.
    rows = logs if maps.shape[-2] == shorter else logs.swapaxes(1, 2)
    places = np.arange(longer) / longer
    steps = range(shorter - shorter // 2)
    return np.array([[np.interp(k / shorter, places, image[k]) for k in steps] for image in rows])
