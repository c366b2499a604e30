"""Noise of one frequency against constructions of its own, and models whose answer is known."""

import re
from collections.abc import Iterator
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

from tests.helpers.networks import mini
from tests.helpers.splits import CENTER, SPREAD, on_model, shapes
from vitscope.data.image_rows import rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.frequency_noise.compute import measure, noise_table, shares_found
from vitscope.measures.frequency_noise.noise import half_plane, noises, ring, signs
from vitscope.measures.frequency_noise.rings import sides
from vitscope.settings.loading import BUNDLED_STUDIES, load_study

FREQUENCIES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
NOISE = {"frequencies": FREQUENCIES, "width": 0.1, "eps": 0.7, "seeds": 2}
EVEN = st.integers(4, 40).map(lambda half: 2 * half)
TENTHS = st.integers(0, 100).map(lambda number: number / 100)


# The ring


# By hand: twice the whole part of 16 (or 112) times the border, such as 2 * int(16 * 0.3) = 8.
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (
            32,
            [(6, 0), (8, 2), (12, 6), (16, 8), (18, 12), (22, 16), (24, 18), (28, 22), (32, 24)],
        ),
        (
            224,
            [
                (44, 0),
                (66, 22),
                (88, 44),
                (112, 66),
                (134, 88),
                (156, 112),
                (178, 134),
                (200, 156),
                (224, 178),
            ],
        ),
    ],
)
def test_the_sides_at_the_usual_frequencies(size: int, expected: list[tuple[int, int]]) -> None:
    assert [sides(frequency, 0.1, size) for frequency in FREQUENCIES] == expected


@given(st.integers(0, 100), st.integers(1, 100), EVEN)
def test_borders_are_those_of_whole_numbers(middle: int, half: int, size: int) -> None:
    """In hundredths everything is whole, and nothing is lost."""
    outer, inner = (
        min(max((middle + sign * half) * size // 200, 0), size // 2) * 2 for sign in (1, -1)
    )
    if outer == inner:
        with pytest.raises(VitscopeError, match="holds no Fourier component"):
            sides(middle / 100, half / 100, size)
    else:
        assert sides(middle / 100, half / 100, size) == (outer, inner)


def test_binary_fractions_would_fall_short() -> None:
    """What the exact sum is for: here a sum of floats loses a whole component."""
    assert int((0.7 + 0.1) * 40 / 2) == 15
    assert sides(0.7, 0.1, 40) == (32, 24)


def naive_ring(frequency: float, width: float, size: int) -> np.ndarray:
    """Decide for every component on its own, by its distance from frequency 0.

    The square of side 2 s around it holds the frequencies from -s to s - 1, in both directions.
    """

    def within(border: float, *positions: int) -> bool:
        reach = int(round(border * size / 2, 9))
        return all(-reach <= place < reach for place in positions)

    middle = size // 2
    return np.array(
        [
            [
                within(frequency + width, y - middle, x - middle)
                and not within(frequency - width, y - middle, x - middle)
                for x in range(size)
            ]
            for y in range(size)
        ]
    )


@pytest.mark.parametrize("size", [8, 32, 38])
@pytest.mark.parametrize("frequency", [0, *FREQUENCIES, 1])
def test_the_ring_component_by_component(size: int, frequency: float) -> None:
    width = 0.3 if size == 8 else 0.1
    np.testing.assert_array_equal(ring(frequency, width, size), naive_ring(frequency, width, size))


def test_rings_that_touch_fill_the_plane() -> None:
    rings = [ring(frequency, 0.125, 32) for frequency in (0.125, 0.375, 0.625, 0.875)]
    np.testing.assert_array_equal(np.sum(rings, axis=0), 1)


@pytest.mark.parametrize("size", [9, 33, 225])
def test_odd_images_are_refused(size: int) -> None:
    with pytest.raises(VitscopeError, match=f"have {size} pixels: set image_size to {size - 1}"):
        sides(0.5, 0.1, size)


@given(TENTHS, st.integers(1, 100).map(lambda number: number / 1000), EVEN)
def test_the_width_that_is_advised_is_enough(frequency: float, width: float, size: int) -> None:
    try:
        outer, inner = sides(frequency, width, size)
    except VitscopeError as error:
        (advised,) = re.findall(r"raise width to ([0-9.]+) or", str(error))
        outer, inner = sides(frequency, float(advised), size)
    assert outer > inner


# The noise


def drawn(rows: list[int], size: int, *frequencies: float, seed: int = 0) -> list[np.ndarray]:
    masks = [half_plane(ring(frequency, 0.1, size)) for frequency in frequencies]
    return list(noises(signs(seed, rows, size), masks))


@pytest.mark.parametrize("size", [10, 32, 64])
@pytest.mark.parametrize("frequency", [0.2, 0.5, 0.9])
def test_it_is_the_real_part_of_the_inverse_of_the_masked_transform(
    size: int, frequency: float
) -> None:
    """As it is defined, with the whole complex plane in double precision."""
    noise = torch.from_numpy(signs(3, [7, 8], size)).double()
    plane = torch.roll(torch.fft.fft2(noise), (size // 2, size // 2), dims=(-2, -1))
    masked = plane * torch.from_numpy(ring(frequency, 0.1, size))
    back = torch.fft.ifft2(torch.roll(masked, (-(size // 2), -(size // 2)), dims=(-2, -1)))
    # The mask is not symmetric: what is thrown away is not small.
    assert back.imag.abs().max() > 0.01
    (ours,) = drawn([7, 8], size, frequency, seed=3)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, back.real.numpy(), atol=2e-6)


def symmetrized(mask: np.ndarray) -> np.ndarray:
    """The mean of a mask and its mirror image, component by component."""
    size = len(mask)
    middle = size // 2
    mirrored = np.empty(mask.shape)
    for y in range(size):
        for x in range(size):
            mirrored[y, x] = mask[(2 * middle - y) % size, (2 * middle - x) % size]
    return (mask + mirrored) / 2


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_its_spectrum_lies_in_the_ring_and_nowhere_else(frequency: float) -> None:
    size = 32
    (noise,) = drawn([0], size, frequency)
    ratio = np.fft.fft2(noise.astype(float)) / np.fft.fft2(signs(0, [0], size).astype(float))
    expected = symmetrized(ring(frequency, 0.1, size))
    passed = np.fft.fftshift(ratio, axes=(-2, -1))
    # Of a sum of 1,024 signs little may be left, so that the quotient is less exact than float32.
    np.testing.assert_allclose(passed, np.broadcast_to(expected, passed.shape), atol=1e-4)
    assert set(np.unique(expected)) <= {0, 0.5, 1}


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_its_variance_is_the_share_of_what_passes(frequency: float) -> None:
    size, images = 32, 300
    kept = (symmetrized(ring(frequency, 0.1, size)) ** 2).sum()
    (noise,) = drawn(list(range(images)), size, frequency)
    # The power of `kept` components, two of each of which are one, of 900 channels.
    tolerance = 5 * np.sqrt(2 * 2 / (kept * images * 3))
    assert np.square(noise, dtype=float).mean() == pytest.approx(kept / size**2, rel=tolerance)


def test_both_signs_are_as_likely_and_independent() -> None:
    values = signs(0, list(range(50)), 32)
    assert values.shape == (50, 3, 32, 32)
    assert set(np.unique(values)) == {-1, 1}
    flat = values.reshape(50, -1)
    assert abs(flat.mean()) < 5 / np.sqrt(flat.size)
    between = flat @ flat.T / flat.shape[1]
    assert np.abs(between - np.eye(50)).max() < 5 / np.sqrt(flat.shape[1])
    shifted = (values[..., 1:] * values[..., :-1]).mean()
    assert abs(shifted) < 5 / np.sqrt(values.size)


def test_draws_are_those_of_today_on_every_machine() -> None:
    """Published numbers rest on them: a change of the stream is a change of results."""
    assert signs(0, [0], 8)[0, 0, 0].tolist() == [1, -1, -1, 1, 1, -1, 1, 1]
    assert signs(2, [1999], 8)[0, 2, 7].tolist() == [1, -1, -1, -1, 1, 1, -1, -1]


@limits(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=6), st.integers(0, 9), EVEN)
def test_noise_of_an_image_is_its_own(rows: list[int], seed: int, size: int) -> None:
    together = signs(seed, rows, size)
    for values, row in zip(together, rows, strict=True):
        np.testing.assert_array_equal(values, signs(seed, [row], size)[0])
    factors = [half_plane(ring(0.5, 0.3, size))]
    (all_at_once,) = noises(together, factors)
    (one_by_one,) = zip(*(noises(part[None], factors) for part in together), strict=True)
    np.testing.assert_array_equal(all_at_once, np.concatenate(one_by_one))


# Models


class Probe(nn.Module):
    """Class 1 where the product of the image and a pattern, less `threshold`, is positive."""

    def __init__(self, pattern: np.ndarray, threshold: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("pattern", torch.tensor(pattern, dtype=torch.float32))
        self.threshold = threshold

    def forward(self, images: Tensor) -> Tensor:
        score = (images * self.pattern).flatten(1).sum(1) - self.threshold
        return torch.stack([torch.zeros_like(score), score], dim=1)


def batches(images: np.ndarray, size: int = 64) -> Iterator[Tensor]:
    return iter(torch.tensor(images, dtype=torch.float32).split(size))


def measured(
    model: nn.Module, images: np.ndarray, labels: np.ndarray, **changes: Any
) -> tuple[np.ndarray, np.ndarray]:
    rows = range(len(images))
    return shares_found(model, batches(images), rows, labels, {**NOISE, **changes})


@pytest.mark.parametrize(("y", "x"), [(2, 1), (0, 7), (5, 11), (14, 3)])
def test_only_noise_of_its_frequency_disturbs_a_probe(y: int, x: int) -> None:
    """It sees one component of channel 0, of which the images hold next to nothing."""
    positions = np.arange(32)
    wave = np.cos(2 * np.pi * (y * positions[:, None] + x * positions) / 32)
    pattern = np.stack([wave, np.zeros_like(wave), np.zeros_like(wave)])
    images = np.tile(1e-3 * pattern, (200, 1, 1, 1))
    clean, shares = measured(Probe(pattern), images, np.ones(200, int))
    assert clean.all()
    passed = [symmetrized(ring(frequency, 0.1, 32))[16 + y, 16 + x] for frequency in FREQUENCIES]
    assert 0 < np.count_nonzero(passed) < len(passed)
    for share, factor in zip(shares.T, passed, strict=True):
        if factor == 0:
            assert (share == 1).all()
        else:
            # 400 draws, of which noise flips half.
            assert share.mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(400))


@pytest.mark.parametrize("margin", [0.5, 1.5])
def test_the_accuracy_of_a_probe_of_the_mean_is_that_of_the_binomial(margin: float) -> None:
    """Noise of a ring around frequency 0 moves the mean by that of its signs."""
    size, images, eps = 16, 500, 0.7
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
    # Found where eps * (2 k - n) / n, of k positive ones among n signs, exceeds -margin * step.
    highest = np.floor((pixels - margin * np.sqrt(pixels)) / 2)
    expected = 1 - binom.cdf(highest, pixels, 0.5)
    error = np.sqrt(expected * (1 - expected) / (2 * images))
    assert shares[:, 0].mean() == pytest.approx(expected, abs=5 * error)


class Given(nn.Module):
    """Give the same logits whatever the images."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.logits = torch.tensor([logits])

    def forward(self, images: Tensor) -> Tensor:
        return self.logits.expand(len(images), -1)


BLANK = np.zeros((5, 3, 32, 32))


def test_a_model_that_sees_nothing_loses_nothing() -> None:
    clean, shares = measured(Given([0, 1]), BLANK, np.array([0, 1, 1, 0, 1]))
    assert clean.tolist() == [False, True, True, False, True]
    np.testing.assert_array_equal(shares, np.repeat(clean[:, None], 9, axis=1))


def test_every_model_gets_the_noise_as_it_is_drawn() -> None:
    """What arrives is the image and noise of its row, whatever the batches and the model."""

    class Recorder(Given):
        def __init__(self) -> None:
            super().__init__([0, 1])
            self.seen: list[np.ndarray] = []

        def forward(self, images: Tensor) -> Tensor:
            self.seen.append(images.numpy().copy())
            return super().forward(images)

    images = np.random.default_rng(0).normal(size=(7, 3, 32, 32)).astype(np.float32)
    rows = [3, 4, 8, 9, 11, 100, 101]
    settings = {**NOISE, "frequencies": [0.2, 0.9]}
    for size in (1, 3, 7):
        model = Recorder()
        shares_found(model, batches(images, size), rows, np.zeros(7, int), settings)
        per_batch = 1 + 2 * 2
        passes = [np.concatenate(model.seen[first::per_batch]) for first in range(per_batch)]
        np.testing.assert_array_equal(passes[0], images)
        for seed in range(2):
            for position, frequency in enumerate(settings["frequencies"]):
                mask = 0.7 * half_plane(ring(frequency, 0.1, 32))
                (noise,) = noises(signs(seed, rows, 32), [mask])
                np.testing.assert_array_equal(passes[1 + 2 * seed + position], images + noise)


def test_grey_images_get_noise_of_one_channel() -> None:
    (grey,), (colour,) = signs(3, [5], 8, channels=1), signs(3, [5], 8)
    np.testing.assert_array_equal(grey, colour[:1])
    images = np.random.default_rng(0).normal(size=(4, 1, 32, 32)).astype(np.float32)
    model = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 10))
    rows, labels = [0, 1, 2, 3], np.zeros(4, int)
    clean, shares = shares_found(model, batches(images, 3), rows, labels, NOISE)
    assert (clean.shape, shares.shape) == ((4,), (4, len(NOISE["frequencies"])))


def test_batches_and_the_order_of_frequencies_do_not_matter() -> None:
    images = np.random.default_rng(1).normal(size=(12, 3, 32, 32))
    model, _ = mini("vit")
    with torch.inference_mode():
        labels = np.concatenate([model(batch).argmax(1) for batch in batches(images)])
    noise = {**NOISE, "frequencies": [0.1, 0.4, 0.9]}
    clean, shares = measured(model, images, labels, **noise)
    assert clean.all()
    assert 0.2 < shares.mean() < 0.95
    backwards = {**noise, "frequencies": [0.9, 0.4, 0.1]}
    again = shares_found(model, batches(images, 5), range(12), labels, backwards)
    np.testing.assert_array_equal(again[1], shares[:, ::-1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(VitscopeError, match="The Given gives logits that are not finite: check"):
        measured(Given([0, value]), BLANK, np.zeros(5, int))


def test_a_job_measures_the_chosen_images(tmp_path: Path) -> None:
    images = shapes(tmp_path / "split", 30)
    network, _ = mini("vit")
    bootstrap = {"resamples": 100, "seed": 3}
    noise = NOISE | {"frequencies": [0.3, 0.1]}
    table = measure(on_model(network, images), {"images": 12, "seed": 1}, noise, bootstrap)
    rows = rows_to_classify(images, 12, 1)
    pixels = images.normalize(rows, CENTER, SPREAD).split(12)
    found = shares_found(network, pixels, rows, images.labels[rows], noise)
    expected = noise_table("net", *found, noise, 32, bootstrap)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    find_table("frequency_noise").write(table, tmp_path / "table.parquet")


def test_images_that_are_missing_are_noticed() -> None:
    with pytest.raises(ValueError, match="got 5 images, expected 6"):
        shares_found(Given([0, 1]), batches(BLANK), range(6), np.zeros(6, int), NOISE)


# The table

BOOTSTRAP = {"resamples": 200, "seed": 0}
CLEAN = np.array([True, True, False, True])
SHARES = np.array([[1, 0.5], [0.5, 0], [0.5, 0], [1, 0]])


def test_the_table_says_what_noise_costs(tmp_path: Path) -> None:
    noise = {"frequencies": [0.9, 0.1], "width": 0.1, "eps": 0.7, "seeds": 2}
    path = tmp_path / "table.parquet"
    find_table("frequency_noise").write(
        noise_table("net", CLEAN, SHARES, noise, 32, BOOTSTRAP), path
    )
    table = find_table("frequency_noise").read(path)
    assert table["frequency"].tolist() == [0.1, 0.9]
    assert table["components"].tolist() == [36, 448]
    assert table["clean_accuracy"].tolist() == [0.75, 0.75]
    assert table["accuracy"].tolist() == [0.125, 0.75]
    assert table["change"].tolist() == [-62.5, 0]
    assert (table["ci_low"] <= table["change"]).all()
    assert (table["ci_high"] >= table["change"]).all()
    same = table[["model", "width", "eps", "image_size", "images", "seeds"]].drop_duplicates()
    assert same.values.tolist() == [["net", 0.1, 0.7, 32, 4, 2]]


def test_the_interval_is_of_the_change_on_the_same_images() -> None:
    """Images that are never found, or always, are no reason for doubt about a change."""
    clean = np.array([True] * 50 + [False] * 50)
    table = noise_table("net", clean, np.tile(clean[:, None], 9), NOISE, 32, BOOTSTRAP)
    assert (table[["change", "ci_low", "ci_high"]] == 0).all(axis=None)


def test_a_single_image_has_no_interval() -> None:
    noise = {**NOISE, "frequencies": [0.1, 0.9]}
    table = noise_table("net", CLEAN[:1], SHARES[:1], noise, 32, BOOTSTRAP)
    assert table["change"].tolist() == [0, -50]
    assert table[["ci_low", "ci_high"]].isna().all(axis=None)


# The study


def own_study(folder: Path, size: int, width: float, kind: str = "frequency_noise") -> Path:
    text = (BUNDLED_STUDIES / "mini.yaml").read_text(encoding="utf-8")
    text = text.replace("image_size: 32", f"image_size: {size}")
    text = text.replace("frequency_noise: {", f"frequency_noise: {{width: {width}, ")
    text = text.replace("kind: frequency_noise", f"kind: {kind}")
    if kind != "frequency_noise":
        text = re.sub(r"\n    published: \{file: fig2b.*\}", "", text)
    # Build-ups have sizes of their own.
    text = re.sub(r"\nbuildups:\n(  .*\n)+", "\n", text)
    path = folder / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_bundled_settings_have_rings() -> None:
    for name in ("mini", "paper"):
        load_study(BUNDLED_STUDIES / f"{name}.yaml")


@pytest.mark.parametrize(
    ("size", "width", "sentence"),
    [
        (
            32,
            0.01,
            "models.resnet: analysis.frequency_noise: the ring at 0.1 pi with a width of 0.01 pi "
            "holds no Fourier component of images of 32 pixels: raise width to 0.0625 or leave "
            "the frequency out.",
        ),
        (
            33,
            0.1,
            "models.resnet: analysis.frequency_noise: a ring of frequencies needs images of an "
            "even size and these have 33 pixels: set image_size to 32.",
        ),
    ],
)
def test_a_study_without_rings_is_refused(
    tmp_path: Path, size: int, width: float, sentence: str
) -> None:
    path = own_study(tmp_path, size, width)
    with pytest.raises(VitscopeError) as caught:
        load_study(path)
    assert str(caught.value) == f"{path}: {sentence}"


def test_rings_matter_only_where_a_figure_shows_them(tmp_path: Path) -> None:
    load_study(own_study(tmp_path, 32, 0.01, kind="spectrum"))
