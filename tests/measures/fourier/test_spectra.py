"""Bands and rings of whole spectra: against the transform of numpy, and closed forms."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vitscope.measures.feature_variance.compute import spatial_variance
from vitscope.measures.fourier.compute import FourierTransforms
from vitscope.measures.fourier.spectra import HalfDiagonal, LongDiagonal, Plane, diagonal_steps
from vitscope.package_data import PUBLISHED_POINTS

EDGES = (0.25, 0.5)
LEAST = np.log(np.float32(1e-6))


def amplitudes(maps: np.ndarray) -> np.ndarray:
    """Return |F| along the diagonal as the authors take it, with numpy and in double precision."""
    size = maps.shape[-1]
    half = int(size / 2)
    transform = np.abs(np.fft.fft2(maps.astype(np.float64)))
    centred = np.roll(transform, (half, half), axis=(-2, -1))
    return np.diagonal(centred, axis1=-2, axis2=-1)[..., half:]


def log_amplitudes(maps: np.ndarray) -> np.ndarray:
    """Return the logarithms of `amplitudes`, mean over channels."""
    return np.log(amplitudes(maps) + 1e-6).mean(axis=1)


def along_diagonal(values: np.ndarray) -> np.ndarray:
    """Return values (N, H, W) along the diagonal, interpolated along the longer side."""
    shorter, longer = sorted(values.shape[-2:])
    # Each row has the frequencies of the longer side, at one frequency of the shorter side.
    rows = values if values.shape[-2] == shorter else values.swapaxes(1, 2)
    places = np.arange(longer) / longer
    steps = range(shorter - shorter // 2)
    return np.array([[np.interp(k / shorter, places, image[k]) for k in steps] for image in rows])


def long_log_amplitudes(maps: np.ndarray) -> np.ndarray:
    """Return log amplitudes along the diagonal of any map, mean over channels."""
    logs = np.log(np.abs(np.fft.fft2(maps.astype(np.float64))) + 1e-6)
    return along_diagonal(logs.mean(axis=1))


def lengths(height: int, width: int) -> np.ndarray:
    """Return the frequency of each component of the whole plane, computed one by one."""
    down = [min(k, height - k) / (height / 2) for k in range(height)]
    across = [min(k, width - k) / (width / 2) for k in range(width)]
    return np.array([[(a * a + b * b) ** 0.5 for b in across] for a in down])


def measured(maps: np.ndarray, edges: Sequence[float] = EDGES) -> tuple[np.ndarray, np.ndarray]:
    values = Plane(*maps.shape[2:], edges, radial=True)(maps)
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
        variance = expected / pixels / max(1, pixels - 1)
        np.testing.assert_allclose(bands[:, band], variance, rtol=1e-4, atol=1e-9)
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


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 4), st.floats(-100, 100), st.integers(0, 99))
def test_it_is_the_diagonal_of_the_transform_of_numpy(
    size: int, images: int, mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, (images, 1, size, size)).astype(np.float32)
    ours = np.exp(HalfDiagonal(1, size)(maps).astype(np.float64)) - 1e-6
    # Allow errors of single precision, relative to the amplitude and to the sum of all pixels.
    theirs = amplitudes(maps)[:, 0]
    tolerance = 3e-7 * np.abs(maps).sum(axis=(1, 2, 3))[:, None] + 2e-6 * theirs
    assert (np.abs(ours - theirs) <= tolerance).all()


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(-100, 100), st.integers(0, 99))
def test_of_maps_that_are_not_square_it_is_interpolated_along_the_longer_side(
    height: int, width: int, mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, (2, 3, height, width)).astype(np.float32)
    amplitude = np.abs(np.fft.fft2(maps.astype(np.float64))) + 1e-6
    # Each amplitude has an error of single precision, relative to the sum of all pixels; in its
    # logarithm, an error is relative to the amplitude.
    errors = 3e-7 * np.abs(maps).sum(axis=(2, 3), keepdims=True) / amplitude
    tolerance = 2e-5 + along_diagonal(errors.mean(axis=1))
    assume(tolerance.max() < 0.1)
    ours = LongDiagonal(height, width)(maps)
    assert (np.abs(ours - long_log_amplitudes(maps)) <= tolerance).all()
    if height == width:
        assert (np.abs(ours - HalfDiagonal(3, height)(maps)) <= 2 * tolerance).all()


@pytest.mark.parametrize(("height", "width"), [(16, 16), (16, 24), (24, 16)])
def test_of_a_wave_along_the_diagonal(height: int, width: int) -> None:
    row, column = np.indices((height, width))
    # The wave has the frequency pi / 2 along each side.
    wave = 5 + 3 * np.cos(np.pi / 2 * (row + column))
    measure = HalfDiagonal(1, 16) if height == width else LongDiagonal(height, width)
    ours = measure(wave[None, None].astype(np.float32))[0]
    assert ours[[0, 4]] == pytest.approx(np.log([5 * wave.size, 3 * wave.size / 2]), abs=1e-6)
    # Except for rounding, there is nothing at the other frequencies.
    assert (np.delete(ours, [0, 4]) < np.log(1e-3)).all()


@pytest.mark.parametrize("channels", [3, 192])
def test_of_any_number_of_channels(channels: int) -> None:
    maps = np.random.default_rng(1).normal(1, 2, (2, channels, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(HalfDiagonal(channels, 8)(maps), log_amplitudes(maps), atol=2e-5)


@settings(max_examples=60)
@given(st.integers(1, 64), st.floats(-1e6, 1e6, width=32))
def test_a_constant_map_has_frequency_0_alone(size: int, value: float) -> None:
    ours = HalfDiagonal(3, size)(np.full((1, 3, size, size), value, np.float32))[0]
    assert ours[0] == pytest.approx(np.log(abs(value) * size**2 + 1e-6), rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(ours[1:], LEAST, rtol=1e-6)


@pytest.mark.parametrize("shape", [(5, 7, 7), (96, 16, 16), (5, 8, 7)], ids=str)
def test_an_image_by_itself_has_the_same_values(shape: tuple[int, int, int]) -> None:
    channels, height, width = shape
    maps = np.random.default_rng(2).normal(size=(5, *shape)).astype(np.float32)
    diagonal = HalfDiagonal(channels, height) if height == width else LongDiagonal(height, width)
    for measure in (diagonal, Plane(height, width, EDGES, radial=True)):
        alone = np.concatenate([measure(maps[i : i + 1]) for i in range(5)])
        np.testing.assert_array_equal(measure(maps), alone)


def test_threads_of_the_library_of_products_do_not_matter() -> None:
    code = (
        "import hashlib, numpy as np\n"
        "from vitscope.measures.fourier.spectra import HalfDiagonal\n"
        "for channels, size in ((192, 16), (64, 32), (512, 8), (3, 31)):\n"
        "    rng = np.random.default_rng(0)\n"
        "    maps = rng.normal(size=(2, channels, size, size)).astype(np.float32)\n"
        "    values = HalfDiagonal(channels, size)(maps)\n"
        "    print(hashlib.sha256(values.tobytes()).hexdigest())\n"
    )
    digests = []
    for threads in "14":
        command, own = [sys.executable, "-c", code], os.environ | {"OPENBLAS_NUM_THREADS": threads}
        digests.append(subprocess.check_output(command, env=own, cwd=Path(__file__).parents[3]))
    assert digests[0] == digests[1]
    assert len(digests[0].split()) == 4


def test_points_of_the_published_figure_are_as_many() -> None:
    points = pd.read_csv(PUBLISHED_POINTS / "fig2a.csv")
    sizes = {"ResNet": [56] * 4 + [28] * 4 + [14] * 6 + [7] * 3, "ViT": [14] * 25}
    for model, expected in sizes.items():
        counts = points[points["model"] == model].groupby("index").size()
        assert counts.tolist() == [diagonal_steps(size) for size in expected]


@pytest.mark.parametrize(
    "shape", [(3, 2, 8, 8), (2, 3, 7, 7), (2, 1, 1, 1), (2, 2, 6, 10), (2, 1, 9, 4)]
)
def test_of_a_tensor_everything_is_the_same_in_double_precision(shape: tuple[int, ...]) -> None:
    maps = np.random.default_rng(0).normal(3, 1, shape).astype(np.float32)
    measure = FourierTransforms(shape[1:], radial=True, edges=[0.25, 0.5])
    found = measure(torch.from_numpy(maps)).numpy()
    assert found.dtype == np.float64
    # Allow errors of single precision, relative to the sum of all pixels.
    np.testing.assert_allclose(found, measure(maps), rtol=1e-5, atol=1e-6)
    if shape[2] == shape[3]:
        expected = log_amplitudes(maps.astype(np.float64))
        np.testing.assert_allclose(found[:, : expected.shape[1]], expected, rtol=1e-9)


@pytest.mark.parametrize("size", [4, 7])
def test_a_constant_tensor_has_nothing_but_frequency_zero(size: int) -> None:
    found = HalfDiagonal(2, size).of_tensor(torch.full((1, 2, size, size), 7.1))
    assert found[0, 0] == pytest.approx(np.log(7.1 * size**2), rel=1e-7)
    np.testing.assert_array_equal(found[0, 1:], found[0, 1])
    assert found[0, 1] == pytest.approx(np.log(1e-6), rel=1e-7)
