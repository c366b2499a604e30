"""Bands and rings of whole spectra: against the transform of numpy, and closed forms."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitscope.measures.feature_variance.compute import spatial_variance
from vitscope.measures.fourier.plane import Plane, WholeSpectrum

EDGES = (0.25, 0.5)
LEAST = np.log(np.float32(1e-6))


def lengths(height: int, width: int) -> np.ndarray:
    """Return the frequency of each component of the whole plane, one after the other."""
    down = [min(k, height - k) / (height / 2) for k in range(height)]
    across = [min(k, width - k) / (width / 2) for k in range(width)]
    return np.array([[(a * a + b * b) ** 0.5 for b in across] for a in down])


def measured(maps: np.ndarray, edges: Sequence[float] = EDGES) -> tuple[np.ndarray, np.ndarray]:
    values = WholeSpectrum(Plane(*maps.shape[2:], edges), radial=True)(maps)
    return values[:, :3], values[:, 3:]


shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 12), st.integers(1, 12))


@settings(max_examples=60)
@given(
    shapes.filter(lambda shape: shape[2] * shape[3] > 1), st.floats(-100, 100), st.integers(0, 9)
)
def test_the_bands_add_up_to_the_variance(
    shape: tuple[int, int, int, int], mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, shape).astype(np.float32)
    bands, _ = measured(maps)
    assert (bands >= 0).all()
    tolerance = 1e-5 + (abs(mean) * 1e-6) ** 2
    np.testing.assert_allclose(bands.sum(axis=1), spatial_variance(maps), rtol=tolerance)


@settings(max_examples=40)
@given(shapes, st.sampled_from([(0.25, 0.5), (0.1, 0.9), (1 / 3, 2 / 3)]), st.integers(0, 9))
def test_bands_and_rings_are_those_of_the_whole_transform_of_numpy(
    shape: tuple[int, int, int, int], edges: tuple[float, float], seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(2, 1, shape).astype(np.float32)
    height, width = shape[2:]
    transform = np.abs(np.fft.fft2(maps.astype(np.float64)))
    length = lengths(height, width)
    low, high = (edge + 1e-6 for edge in edges)
    inside = [(length > 0) & (length <= low), (low < length) & (length <= high), high < length]
    pixels = height * width
    bands, rings = measured(maps, edges)
    for band, chosen in enumerate(inside):
        expected = (transform[:, :, chosen] ** 2).sum(axis=2).mean(axis=1)
        np.testing.assert_allclose(
            bands[:, band], expected / pixels / max(1, pixels - 1), rtol=1e-4, atol=1e-9
        )
    side = max(height, width)
    ring = np.ceil(length * side / 2 - 0.5 - 1e-6)
    logarithm = np.log(transform + 1e-6)
    assert rings.shape == (shape[0], side // 2 + 1)
    for radius in range(side // 2 + 1):
        expected = logarithm[:, :, ring == radius].mean(axis=(1, 2))
        np.testing.assert_allclose(rings[:, radius], expected, atol=1e-3)


@pytest.mark.parametrize(
    ("vector", "band"),
    # On an edge, a component belongs to the band below; (3, 4) has a length of 5.
    [((2, 0), 0), ((0, 4), 1), ((3, 4), 2), ((8, 8), 2), ((1, 1), 0), ((-3, 2), 1), ((0, 8), 2)],
)
def test_a_wave_is_in_the_band_of_its_frequency(vector: tuple[int, int], band: int) -> None:
    row, column = np.indices((16, 16))
    phase = 2 * np.pi * (vector[0] * row + vector[1] * column) / 16
    wave = 7 + 3 * np.cos(phase)[None, None]
    bands, _ = measured(wave.astype(np.float32))
    expected = np.zeros(3)
    expected[band] = wave.var(ddof=1)
    np.testing.assert_allclose(bands[0], expected, atol=1e-10, rtol=1e-5)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40))
def test_every_component_but_frequency_0_is_in_a_band(height: int, width: int) -> None:
    assert Plane(height, width, EDGES).components.sum() == height * width - 1


@pytest.mark.parametrize("size", [(4, 4), (7, 7), (5, 6), (31, 31)])
def test_a_constant_map_has_no_variance_and_frequency_0_alone(size: tuple[int, int]) -> None:
    bands, rings = measured(np.full((1, 2, *size), 0.1, np.float32))
    assert bands.tolist() == [[0, 0, 0]]
    assert rings[0, 0] == pytest.approx(np.log(0.1 * np.prod(size)), rel=1e-5)
    np.testing.assert_allclose(rings[0, 1:], LEAST, rtol=1e-6)
