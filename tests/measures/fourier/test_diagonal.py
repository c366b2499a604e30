"""The half-diagonal against the transform of numpy, closed forms, and the published figure."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.measures.fourier.diagonals import amplitudes, log_amplitudes, long_log_amplitudes
from vitscope.measures.fourier.compute import Transforms
from vitscope.measures.fourier.plane import HalfDiagonal, LongDiagonal, diagonal_steps
from vitscope.package_data import PUBLISHED_POINTS

LEAST = np.log(np.float32(1e-6))


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 4), st.floats(-100, 100), st.integers(0, 99))
def test_it_is_the_diagonal_of_the_transform_of_numpy(
    size: int, images: int, mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, (images, 1, size, size)).astype(np.float32)
    ours = np.exp(HalfDiagonal(1, size)(maps).astype(np.float64)) - 1e-6
    # Single precision, of the amplitude and of what all pixels add up to.
    theirs = amplitudes(maps)[:, 0]
    tolerance = 3e-7 * np.abs(maps).sum(axis=(1, 2, 3))[:, None] + 2e-6 * theirs
    assert (np.abs(ours - theirs) <= tolerance).all()


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(-100, 100), st.integers(0, 99))
def test_of_maps_that_are_not_square_it_is_interpolated_along_the_longer_side(
    height: int, width: int, mean: float, seed: int
) -> None:
    maps = np.random.default_rng(seed).normal(mean, 1, (2, 3, height, width)).astype(np.float32)
    # Where values cancel, rounding to float32 is all that is left of a sum, and of its logarithm.
    assume(min(long_log_amplitudes(maps[:, [each]]).min() for each in range(3)) > np.log(0.1))
    ours = LongDiagonal(height, width)(maps)
    np.testing.assert_allclose(ours, long_log_amplitudes(maps), atol=2e-3)
    if height == width:
        np.testing.assert_allclose(ours, HalfDiagonal(3, height)(maps), atol=2e-3)


@pytest.mark.parametrize(("height", "width"), [(16, 24), (24, 16)])
def test_of_a_wave_along_the_diagonal_of_a_rectangle(height: int, width: int) -> None:
    row, column = np.indices((height, width))
    # Half a pi on each side.
    wave = 5 + 3 * np.cos(np.pi / 2 * (row + column))
    ours = LongDiagonal(height, width)(wave[None, None].astype(np.float32))[0]
    assert ours[[0, 4]] == pytest.approx(np.log([5 * 384, 3 * 384 / 2]), abs=1e-6)
    assert (np.delete(ours, [0, 4]) < np.log(1e-3)).all()


@pytest.mark.parametrize("channels", [3, 192])
def test_of_any_number_of_channels(channels: int) -> None:
    maps = np.random.default_rng(1).normal(1, 2, (2, channels, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(HalfDiagonal(channels, 8)(maps), log_amplitudes(maps), atol=2e-5)


def test_of_a_wave_along_the_diagonal() -> None:
    row, column = np.indices((16, 16))
    wave = 5 + 3 * np.cos(2 * np.pi * 4 * (row + column) / 16)
    expected = np.full(8, LEAST)
    expected[[0, 4]] = np.log([5 * 256, 3 * 256 / 2])
    ours = HalfDiagonal(1, 16)(wave[None, None].astype(np.float32))[0]
    # But for rounding there is nothing at the other frequencies.
    assert ours[[0, 4]] == pytest.approx(expected[[0, 4]], abs=1e-6)
    assert (np.delete(ours, [0, 4]) < np.log(1e-3)).all()


@settings(max_examples=60)
@given(st.integers(1, 64), st.floats(-1e6, 1e6, width=32))
def test_a_constant_map_has_frequency_0_alone(size: int, value: float) -> None:
    ours = HalfDiagonal(3, size)(np.full((1, 3, size, size), value, np.float32))[0]
    assert ours[0] == pytest.approx(np.log(abs(value) * size**2 + 1e-6), rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(ours[1:], LEAST, rtol=1e-6)


@pytest.mark.parametrize(("channels", "size"), [(5, 7), (96, 16)])
def test_an_image_by_itself_has_the_same_values(channels: int, size: int) -> None:
    maps = np.random.default_rng(2).normal(size=(5, channels, size, size)).astype(np.float32)
    measure = HalfDiagonal(channels, size)
    alone = np.concatenate([measure(maps[i : i + 1]) for i in range(5)])
    np.testing.assert_array_equal(measure(maps), alone)


def test_threads_of_the_library_of_products_do_not_matter() -> None:
    code = (
        "import hashlib, numpy as np\n"
        "from vitscope.measures.fourier.plane import HalfDiagonal\n"
        "for channels, size in ((192, 16), (64, 32), (512, 8), (3, 31)):\n"
        "    rng = np.random.default_rng(0)\n"
        "    maps = rng.normal(size=(2, channels, size, size)).astype(np.float32)\n"
        "    values = HalfDiagonal(channels, size)(maps)\n"
        "    print(hashlib.sha256(values.tobytes()).hexdigest())\n"
    )
    digests = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
        ).stdout
        for threads in "14"
    ]
    assert digests[0] == digests[1]
    assert len(digests[0].split()) == 4


def test_points_of_the_published_figure_are_as_many() -> None:
    points = pd.read_csv(PUBLISHED_POINTS / "fig2a.csv")
    sizes = {"ResNet": [56] * 4 + [28] * 4 + [14] * 6 + [7] * 3, "ViT": [14] * 25}
    for model, expected in sizes.items():
        counts = points[points["model"] == model].groupby("index").size()
        assert counts.tolist() == [diagonal_steps(size) for size in expected]


SHAPES = [(3, 2, 8, 8), (2, 3, 7, 7), (2, 1, 1, 1), (2, 2, 6, 10), (2, 1, 9, 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_of_a_tensor_everything_is_the_same_in_double_precision(shape: tuple[int, ...]) -> None:
    maps = np.random.default_rng(0).normal(3, 1, shape).astype(np.float32)
    measure = Transforms(shape[1:], radial=True, edges=[0.25, 0.5])
    found = measure(torch.from_numpy(maps)).numpy()
    assert found.dtype == np.float64
    # Single precision, of what all pixels add up to.
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
