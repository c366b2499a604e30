"""Noise of one frequency against constructions of its own, and models whose answer is known."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from scipy.stats import binom
from torch import Tensor, nn

from tests.helpers import networks
from tests.helpers.splits import CENTER, SPREAD, on_model, shapes
from tests.measures.disturbed.seeing import batches, seen_of, study_of
from vitscope.data.split import rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.image_size import ImageSize
from vitscope.measures.disturbed.classify import shares_found
from vitscope.measures.disturbed.frequency_noise import (
    filter_images,
    measure_frequency_noise,
    noise_disturbance,
    noise_filter,
    noise_ring,
    noise_table,
    random_noise_signs,
)
from vitscope.measures.disturbed.measure import noise_ring_sides
from vitscope.studies.loading import load_study

FREQUENCIES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
NOISE = {"frequencies": FREQUENCIES, "width": 0.1, "eps": 0.7, "seeds": 2}
EVEN = st.integers(4, 40).map(lambda half: 2 * half)
TENTHS = st.integers(0, 100).map(lambda number: number / 100)


def test_the_sides_at_the_usual_frequencies() -> None:
    # By hand: twice the whole part of 16 times the border, such as 2 * int(16 * 0.3) = 8.
    expected = [(6, 0), (8, 2), (12, 6), (16, 8), (18, 12), (22, 16), (24, 18), (28, 22), (32, 24)]
    assert [noise_ring_sides(frequency, 0.1, 32) for frequency in FREQUENCIES] == expected


@given(st.integers(0, 100), st.integers(1, 100), EVEN)
def test_borders_are_those_of_whole_numbers(middle: int, half: int, size: int) -> None:
    """Compare with whole numbers of hundredths, which are exact."""
    outer, inner = (
        min(max((middle + sign * half) * size // 200, 0), size // 2) * 2 for sign in (1, -1)
    )
    if outer == inner:
        with pytest.raises(VitscopeError, match="holds no Fourier component"):
            noise_ring_sides(middle / 100, half / 100, size)
    else:
        assert noise_ring_sides(middle / 100, half / 100, size) == (outer, inner)


def test_binary_fractions_would_fall_short() -> None:
    """Sums are exact, because here a sum of floats would lose a whole component."""
    assert int((0.7 + 0.1) * 40 / 2) == 15
    assert noise_ring_sides(0.7, 0.1, 40) == (32, 24)


@pytest.mark.parametrize("size", [8, 32, 38, (32, 48), (38, 8)])
@pytest.mark.parametrize("frequency", [0, 0.3, 0.7, 1])
def test_the_ring_is_a_square_around_frequency_0_without_a_smaller_one(
    size: int | tuple[int, int], frequency: float
) -> None:
    """The square of side 2 s holds the frequencies from -s to s - 1, in both directions."""
    both, width = (size, size) if isinstance(size, int) else size, 0.3

    def inside(which: int) -> np.ndarray:
        reach = [noise_ring_sides(frequency, width, side)[which] // 2 for side in both]
        places = [np.arange(side) - side // 2 for side in both]
        return np.outer(*((-s <= at) & (at < s) for s, at in zip(reach, places, strict=True)))

    np.testing.assert_array_equal(noise_ring(frequency, width, size), inside(0) & ~inside(1))


def test_rings_that_touch_fill_the_plane() -> None:
    rings = [noise_ring(frequency, 0.125, 32) for frequency in (0.125, 0.375, 0.625, 0.875)]
    np.testing.assert_array_equal(np.sum(rings, axis=0), 1)


@pytest.mark.parametrize("size", [9, 33, 225])
def test_odd_images_are_refused(size: int) -> None:
    with pytest.raises(VitscopeError, match=f"have {size} pixels: set image_size to {size - 1}"):
        noise_ring_sides(0.5, 0.1, size)


@given(TENTHS, st.integers(1, 100).map(lambda number: number / 1000), EVEN)
def test_the_width_that_is_advised_is_enough(frequency: float, width: float, size: int) -> None:
    try:
        outer, inner = noise_ring_sides(frequency, width, size)
    except VitscopeError as error:
        (advised,) = re.findall(r"raise width to ([0-9.]+) or", str(error))
        outer, inner = noise_ring_sides(frequency, float(advised), size)
    assert outer > inner


def drawn(rows: list[int], size: ImageSize, *frequencies: float, seed: int = 0) -> list[np.ndarray]:
    masks = [noise_filter(noise_ring(frequency, 0.1, size)) for frequency in frequencies]
    return list(filter_images(random_noise_signs(seed, rows, size), masks))


@pytest.mark.parametrize("size", [10, 32, 64, (20, 32), (64, 10)])
@pytest.mark.parametrize("frequency", [0.2, 0.5, 0.9])
def test_it_is_the_real_part_of_the_inverse_of_the_masked_transform(
    size: ImageSize, frequency: float
) -> None:
    """Compare with the definition, on the whole complex plane in double precision."""
    noise = torch.from_numpy(random_noise_signs(3, [7, 8], size)).double()
    plane = torch.fft.fftshift(torch.fft.fft2(noise), dim=(-2, -1))
    masked = plane * torch.from_numpy(noise_ring(frequency, 0.1, size))
    back = torch.fft.ifft2(torch.fft.ifftshift(masked, dim=(-2, -1)))
    # The mask is not symmetric: the imaginary part, which is thrown away, is not small.
    assert back.imag.abs().max() > 0.01
    (ours,) = drawn([7, 8], size, frequency, seed=3)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, back.real.numpy(), atol=2e-6)


def test_both_signs_are_as_likely_and_independent() -> None:
    values = random_noise_signs(0, list(range(50)), 32)
    assert values.shape == (50, 3, 32, 32)
    assert set(np.unique(values)) == {-1, 1}
    flat = values.reshape(50, -1)
    assert abs(flat.mean()) < 5 / np.sqrt(flat.size)
    between = flat @ flat.T / flat.shape[1]
    assert np.abs(between - np.eye(50)).max() < 5 / np.sqrt(flat.shape[1])
    shifted = (values[..., 1:] * values[..., :-1]).mean()
    assert abs(shifted) < 5 / np.sqrt(values.size)


def test_draws_are_those_of_today_on_every_machine() -> None:
    """Pin the random stream: if it changed, published numbers would change."""
    assert random_noise_signs(0, [0], 8)[0, 0, 0].tolist() == [1, -1, -1, 1, 1, -1, 1, 1]
    assert random_noise_signs(2, [1999], 8)[0, 2, 7].tolist() == [1, -1, -1, -1, 1, 1, -1, -1]


@limits(max_examples=25)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=6), st.integers(0, 9), EVEN)
def test_noise_of_an_image_is_its_own(rows: list[int], seed: int, size: int) -> None:
    together = random_noise_signs(seed, rows, size)
    for values, row in zip(together, rows, strict=True):
        np.testing.assert_array_equal(values, random_noise_signs(seed, [row], size)[0])
    factors = [noise_filter(noise_ring(0.5, 0.3, size))]
    (all_at_once,) = filter_images(together, factors)
    (one_by_one,) = zip(*(filter_images(part[None], factors) for part in together), strict=True)
    np.testing.assert_array_equal(all_at_once, np.concatenate(one_by_one))


class Probe(nn.Module):
    """Predicts class 1 if the dot product of image and pattern exceeds `threshold`, else 0."""

    def __init__(self, pattern: np.ndarray, threshold: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("pattern", torch.tensor(pattern, dtype=torch.float32))
        self.threshold = threshold

    def forward(self, images: Tensor) -> Tensor:
        score = (images * self.pattern).flatten(1).sum(1) - self.threshold
        return torch.stack([torch.zeros_like(score), score], dim=1)


def measured(
    model: nn.Module, images: np.ndarray, labels: np.ndarray, **changes: Any
) -> tuple[np.ndarray, np.ndarray]:
    rows = range(len(images))
    return shares_found(
        model, batches(images), rows, labels, noise_disturbance({**NOISE, **changes})
    )


def test_the_accuracy_of_a_probe_of_the_mean_is_that_of_the_binomial() -> None:
    """Noise in a ring around frequency 0 moves the mean by `eps` times the mean of its signs."""
    size, images, eps, margin = 16, 500, 0.7, 0.5
    pixels = size * size
    step = eps / np.sqrt(pixels)
    pattern = np.stack([np.full((size, size), 1 / pixels), *np.zeros((2, size, size))])
    model = Probe(pattern, threshold=-margin * step)
    black = np.zeros((images, 3, size, size))
    found, shares = measured(
        model, black, np.ones(images, int), frequencies=[0.2, 0.5], width=0.2, eps=eps, seeds=2
    )
    assert found.all()
    assert (shares[:, 1] == 1).all()
    # With k of n signs positive, the class is found if eps * (2 k - n) / n exceeds -margin * step.
    highest = np.floor((pixels - margin * np.sqrt(pixels)) / 2)
    expected = 1 - binom.cdf(highest, pixels, 0.5)
    error = np.sqrt(expected * (1 - expected) / (2 * images))
    assert shares[:, 0].mean() == pytest.approx(expected, abs=5 * error)


class Given(nn.Module):
    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.logits = torch.tensor([logits])

    def forward(self, images: Tensor) -> Tensor:
        return self.logits.expand(len(images), -1)


BLANK = np.zeros((5, 3, 32, 32))


def test_every_model_gets_the_noise_as_it_is_drawn() -> None:
    """A model sees each image plus the noise of its row, whatever the batches and the model."""
    images = np.random.default_rng(0).normal(size=(7, 3, 32, 32)).astype(np.float32)
    rows, frequencies = [3, 4, 8, 9, 11, 100, 101], [0.2, 0.9]
    for size in (1, 3, 7):
        disturb = noise_disturbance({**NOISE, "frequencies": frequencies})
        clean, *noisy = seen_of(images, rows, size, disturb, 2 * 2)
        np.testing.assert_array_equal(clean, images)
        for arrived, (seed, frequency) in zip(noisy, product((0, 1), frequencies), strict=True):
            (noise,) = filter_images(
                random_noise_signs(seed, rows, 32),
                [0.7 * noise_filter(noise_ring(frequency, 0.1, 32))],
            )
            np.testing.assert_array_equal(arrived, images + noise)


def test_grey_images_get_noise_of_one_channel() -> None:
    (grey,), (colour,) = random_noise_signs(3, [5], 8, channels=1), random_noise_signs(3, [5], 8)
    np.testing.assert_array_equal(grey, colour[:1])
    images = np.random.default_rng(0).normal(size=(4, 1, 32, 32)).astype(np.float32)
    model = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 10))
    rows, labels = [0, 1, 2, 3], np.zeros(4, int)
    clean, shares = shares_found(model, batches(images, 3), rows, labels, noise_disturbance(NOISE))
    assert (clean.shape, shares.shape) == ((4,), (4, len(NOISE["frequencies"])))


def test_logits_that_are_not_finite_are_refused() -> None:
    with pytest.raises(VitscopeError, match="The Given gives logits that are not finite: check"):
        measured(Given([0, np.nan]), BLANK, np.zeros(5, int))


def test_a_job_measures_the_chosen_images(tmp_path: Path) -> None:
    images = shapes(tmp_path / "split", 30)
    network, _ = networks.mini("vit")
    bootstrap = {"resamples": 100, "seed": 3}
    noise = NOISE | {"frequencies": [0.3, 0.1]}
    table = measure_frequency_noise(
        on_model(network, images), {"images": 12, "seed": 1}, noise, bootstrap
    )
    rows = rows_to_classify(images, 12, 1)
    pixels = images.normalize(rows, CENTER, SPREAD).split(12)
    found = shares_found(network, pixels, rows, images.labels[rows], noise_disturbance(noise))
    expected = noise_table("net", *found, noise, 32, bootstrap)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    # With the same number of images, every model has the same resamples, in the same order.
    clean, shares = found
    weights = np.random.default_rng(3).multinomial(12, [1 / 12] * 12, size=100)
    changes = 100 * (shares[:, ::-1] - clean[:, None])
    kept = np.stack(table["change_resampled"], axis=1)
    np.testing.assert_allclose(kept, weights @ changes / 12, rtol=1e-6, atol=1e-9)


def test_images_that_are_missing_are_noticed() -> None:
    with pytest.raises(ValueError, match="got 5 images, expected 6"):
        shares_found(
            Given([0, 1]), batches(BLANK), range(6), np.zeros(6, int), noise_disturbance(NOISE)
        )


def test_the_table_says_what_noise_costs() -> None:
    clean = np.array([True, True, False, True])
    shares = np.array([[1, 0.5], [0.5, 0], [0.5, 0], [1, 0]])
    noise = NOISE | {"frequencies": [0.9, 0.1]}
    table = noise_table("net", clean, shares, noise, 32, {"resamples": 200, "seed": 0})
    assert table["frequency"].tolist() == [0.1, 0.9]
    assert table["components"].tolist() == [36, 448]
    assert table["clean_accuracy"].tolist() == [0.75, 0.75]
    assert table["accuracy"].tolist() == [0.125, 0.75]
    same = table[["model", "width", "eps", "image_size", "images", "seeds"]].drop_duplicates()
    assert same.values.tolist() == [["net", 0.1, 0.7, 32, 4, 2]]


def test_rings_matter_only_where_a_figure_shows_them(tmp_path: Path) -> None:
    load_study(study_of(tmp_path, "spectrum", 32, frequency_noise={"width": 0.01}))
    load_study(study_of(tmp_path, "frequency_noise", 32, frequency_noise={"width": 0.1}))
