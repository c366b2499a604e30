"""The corruptions: each against an oracle, and all for what depends on what."""

import colorsys
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from tests.helpers.processes import python
from vitscope.corruptions import CORRUPTIONS, GROUPS, SEVERITIES, frost, kinds
from vitscope.corruptions.kinds import (
    FUNCTIONS,
    corrupt,
    corruption_parameters,
    gaussian_noise,
    impulse_noise,
    shot_noise,
)
from vitscope.data.sources.shapes32 import draw_shapes
from vitscope.errors import VitscopeError
from vitscope.package_data import ROOT
from vitscope.studies.loading import analysis_schema

SHAPES = draw_shapes("test", np.arange(200), seed=0).pixels.transpose(0, 3, 1, 2).copy()
SMOOTH = np.float32([0.05, 0.2, 0.4, 0.8, 1, 0.6])
CHANCE = {"gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur", "snow"}
CHANCE |= {"frost", "fog", "elastic_transform"}


def draws(count: int, seed: int = 0) -> Iterator[np.random.Generator]:
    return (np.random.default_rng((seed, i)) for i in range(count))


def pictures(count: int = 3, height: int = 20, width: int = 26) -> np.ndarray:
    return np.random.default_rng(7).random((count, 3, height, width), dtype=np.float32)


def flat(value: float, count: int = 8, side: int = 64) -> np.ndarray:
    return np.full((count, 3, side, side), value, np.float32)


@pytest.mark.parametrize("side", [32, 64])
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_an_image_depends_on_its_row_and_not_on_its_company(corruption: str, side: int) -> None:
    images = SHAPES if side == 32 else SHAPES[:16].repeat(2, axis=2).repeat(2, axis=3)
    rows = np.arange(len(images)) + 5
    many = corrupt(images, corruption, 4, rows, seed=3)
    some = [11, 2]
    np.testing.assert_array_equal(corrupt(images[some], corruption, 4, rows[some], 3), many[some])
    np.testing.assert_array_equal(corrupt(images[7:8], corruption, 4, [12], 3)[0], many[7])


def test_the_order_of_images_in_memory_does_not_matter() -> None:
    """NumPy adds in that order, and a mean of many equal values shows how exactly."""
    images = large_photographs("")[:1]
    channels_last = images.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    same = np.ascontiguousarray(images)
    for severity in SEVERITIES:
        expected = corrupt(same, "contrast", severity, [0])
        np.testing.assert_array_equal(corrupt(channels_last, "contrast", severity, [0]), expected)


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_chance_depends_on_row_seed_and_severity(corruption: str) -> None:
    image = SHAPES[:1]
    one, same = (corrupt(image, corruption, 3, [4], seed=1) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    for row, seed in ((5, 1), (4, 2)):
        other = corrupt(image, corruption, 3, [row], seed)
        assert (one != other).any() == (corruption in CHANCE)


def test_noise_is_drawn_anew_for_each_severity() -> None:
    gray = np.full((1, 3, 64, 64), 128, np.uint8)
    one, other = (corrupt(gray, "gaussian_noise", s, [0]).astype(float) for s in (1, 2))
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.05


@pytest.mark.parametrize("corruption", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(8, 8), (40, 25)])
def test_images_of_any_size(corruption: str, shape: tuple[int, int]) -> None:
    images = (255 * pictures(2, *shape)).astype(np.uint8)
    for severity in SEVERITIES:
        corrupted = corrupt(images, corruption, severity, [0, 1])
        assert corrupted.shape == images.shape
        assert corrupted.dtype == np.uint8


DIGEST = """
import hashlib
import numpy as np
from vitscope.corruptions import CORRUPTIONS
from vitscope.corruptions.kinds import corrupt
images = np.random.default_rng(0).integers(0, 256, (2, 3, 224, 224), dtype=np.uint8)
for name in CORRUPTIONS:
    print(name, hashlib.sha256(corrupt(images, name, 2, [3, 8]).tobytes()).hexdigest())
"""


def test_the_number_of_threads_does_not_matter() -> None:
    digests = []
    for threads in ("1", "4"):
        limits = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        digests.append(python(DIGEST, env={**os.environ, **limits}, cwd=ROOT))
    assert digests[0] == digests[1]
    assert len(digests[0].splitlines()) == len(CORRUPTIONS)


def distances(images: np.ndarray, corruption: str) -> list[float]:
    rows, clean = range(len(images)), images.astype(np.float64)
    return [
        float(np.square(corrupt(images, corruption, severity, rows) - clean).mean())
        for severity in SEVERITIES
    ]


def large_photographs(corruption: str) -> np.ndarray:
    from matplotlib.cbook import get_sample_data

    with Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)) as file:
        whole = file.convert("RGB").resize((280, 280))
    # Fog is another one in each image: it takes many of them to tell its mean.
    count = 24 if corruption == "fog" else 8
    corners = np.random.default_rng(0).integers(0, 57, (count, 2)).tolist()
    crops = [whole.crop((x, y, x + 224, y + 224)) for x, y in corners]
    return np.stack([np.asarray(crop).transpose(2, 0, 1) for crop in crops])


@pytest.mark.parametrize("corruption", CORRUPTIONS)
@pytest.mark.parametrize(
    "images_for", [lambda _: SHAPES, pytest.param(large_photographs, marks=pytest.mark.nightly)]
)
def test_severity_takes_images_further_away(
    corruption: str, images_for: Callable[[str], np.ndarray]
) -> None:
    images = images_for(corruption)
    assert (np.diff([0, *distances(images, corruption)]) > 0).all()


def test_the_corruptions_are_those_of_the_schema() -> None:
    setting = analysis_schema()["properties"]["robustness"]["properties"]
    assert tuple(setting["corruptions"]["default"]) == CORRUPTIONS
    assert tuple(setting["corruptions"]["items"]["enum"]) == CORRUPTIONS
    assert list(GROUPS) == ["noise", "blur", "weather", "digital"]


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_parameters_are_those_of_the_function(corruption: str) -> None:
    wanted = set(inspect.signature(FUNCTIONS[corruption]).parameters) - {"images", "draws"}
    for severity in SEVERITIES:
        for side in (8, 32, 64, 224, 300):
            assert set(corruption_parameters(corruption, severity, side)) == wanted


def test_parameters_run_with_the_logarithm_of_the_side() -> None:
    assert corruption_parameters("gaussian_noise", 5, 32) == {"deviation": 0.10}
    assert corruption_parameters("gaussian_noise", 5, 224) == {"deviation": 0.38}
    assert corruption_parameters("gaussian_noise", 5, 8) == corruption_parameters(
        "gaussian_noise", 5, 32
    )
    assert corruption_parameters("gaussian_noise", 5, 500) == corruption_parameters(
        "gaussian_noise", 5, 224
    )
    # 96 is 32 times 3, and 224 is 32 times 7.
    expected = 0.10 + 0.28 * np.log(3) / np.log(7)
    assert corruption_parameters("gaussian_noise", 5, 96)["deviation"] == pytest.approx(expected)
    # Half way in the logarithm: 80, 25; qualities and radii stay whole.
    assert corruption_parameters("jpeg_compression", 1, round(32 * sqrt(7))) == {"quality": 52}
    assert corruption_parameters("motion_blur", 1, 85)["radius"] == 8


@pytest.mark.parametrize(
    ("corruption", "severity", "message"),
    [
        ("gausian_noise", 1, r"no corruption 'gausian_noise'.*Did you mean 'gaussian_noise'"),
        ("fog", 6, "no severity 6 of fog, only 1 to 5"),
        ("fog", 0, "no severity 0 of fog"),
    ],
)
def test_what_there_is_not_is_refused(corruption: str, severity: int, message: str) -> None:
    with pytest.raises(VitscopeError, match=message):
        corrupt(SHAPES[:1], corruption, severity, [0])


def test_images_are_bytes() -> None:
    with pytest.raises(ValueError, match="expected uint8"):
        corrupt(SHAPES[:1].astype(np.float32), "fog", 1, [0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected uint8 \(N, 3, H, W\) or \(N, 1, H, W\)"):
        corrupt(SHAPES[:1, :2], "fog", 1, [0])


GREY = SHAPES[:40, 1:2].copy()


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_a_grey_image_is_corrupted_as_the_same_image_in_colour(
    corruption: str, severity: int
) -> None:
    """The first channel of noise is the same draw; ice is as light as it seems in colour."""
    rows = np.arange(len(GREY))
    grey = corrupt(GREY, corruption, severity, rows, seed=1)
    colour = corrupt(GREY.repeat(3, axis=1), corruption, severity, rows, seed=1)
    assert grey.shape == GREY.shape
    if corruption == "frost":
        expected = np.stack([light(image) for image in colour])
    else:
        expected = colour[:, :1]
    # What is cut off above white differs by the colour of ice, what is compressed by rounding.
    distance = np.abs(grey.astype(int) - expected.astype(int))
    assert distance.max() <= {"frost": 6, "jpeg_compression": 2, "snow": 1}.get(corruption, 0)


def light(image: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(image.transpose(1, 2, 0)).convert("L"))[None]


@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_noise_has_its_variance(severity: int) -> None:
    gray = np.full((8, 3, 64, 64), 128, np.uint8)
    deviation = corruption_parameters("gaussian_noise", severity, 32)["deviation"]
    noise = gaussian_noise(gray / np.float32(255), draws(8), deviation) - gray / 255
    # 98,304 values: a relative sqrt(2 / 98,304), here 5 times; the mean likewise.
    assert noise.var() == pytest.approx(deviation**2, rel=0.0226)
    assert noise.mean() == pytest.approx(0, abs=5 * deviation / sqrt(noise.size))
    small = corrupt(np.full((8, 3, 32, 32), 128, np.uint8), "gaussian_noise", severity, range(8))
    # Rounded to bytes, which adds a twelfth; nothing is cut off at 5 deviations of 0.1.
    expected = (255 * deviation) ** 2 + 1 / 12
    assert small.astype(float).var() == pytest.approx(expected, rel=5 * sqrt(2 / small.size))


@pytest.mark.parametrize("photons", [500.0, 50.0, 3.0])
@pytest.mark.parametrize("value", [0.1, 0.5, 1.0])
def test_shot_noise_has_a_variance_that_is_its_mean(photons: float, value: float) -> None:
    noisy = shot_noise(flat(value), draws(8), photons)
    expected = value * photons
    assert noisy.mean() == pytest.approx(value, abs=5 * sqrt(value / photons / noisy.size))
    # Of a Poisson variable the fourth moment is that of a normal one, and its mean besides.
    spread = sqrt((2 + 1 / expected) / noisy.size)
    assert noisy.var() == pytest.approx(value / photons, rel=5 * spread)
    np.testing.assert_allclose(noisy * photons, np.rint(noisy * photons), atol=1e-3)


@pytest.mark.parametrize("share", [0.01, 0.27])
def test_impulse_noise_hits_its_share_and_nothing_else(share: float) -> None:
    noisy = impulse_noise(flat(0.4), draws(8), share)
    for value in (0, 1):
        hit = (noisy == value).mean()
        assert hit == pytest.approx(share / 2, abs=5 * sqrt(share / 2 / noisy.size))
    assert set(np.unique(noisy)) == {0, np.float32(0.4), 1}


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", [32, 224])
def test_disks_sum_to_one_and_are_as_wide_as_their_radius(severity: int, side: int) -> None:
    chosen = corruption_parameters("defocus_blur", severity, side)
    kernel = kinds.disk_kernel(**chosen)
    assert kernel.sum() == pytest.approx(1, abs=1e-12)
    for turned in (kernel[::-1], kernel[:, ::-1], kernel.T):
        np.testing.assert_allclose(kernel, turned, atol=1e-15)
    offset = np.arange(len(kernel)) - len(kernel) // 2
    distance = np.hypot(*np.meshgrid(offset, offset))
    # The middle of a disk is even, and nothing lies beyond its soft edge.
    inner = kernel[distance <= chosen["radius"] - 3]
    assert np.ptp(inner) < 1e-12 if inner.size else True
    assert (kernel[distance > chosen["radius"] + 3] == 0).all()


def test_defocus_is_a_convolution_that_mirrors_at_the_edge() -> None:
    images = pictures()
    expected = ndimage.correlate(images, kinds.disk_kernel(6.0, 0.5)[None, None], mode="mirror")
    np.testing.assert_allclose(kinds.defocus_blur(images, [], 6.0, 0.5), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("deviation", "mode", "truncate"), [(1.5, "nearest", 4), (4, "reflect", 3)]
)
def test_a_gaussian_along_both_axes_is_that_of_scipy(
    deviation: float, mode: str, truncate: float
) -> None:
    images = pictures()
    ours = kinds.map_both_axes(kinds.gaussian_matrix(deviation, mode, truncate), images)
    theirs = ndimage.gaussian_filter(images, deviation, mode=mode, truncate=truncate, axes=(2, 3))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize(("reach", "rounds"), [(1, 1), (1, 3), (3, 2)])
def test_glass_swaps_pixels_one_by_one(reach: int, rounds: int) -> None:
    images = (255 * pictures(4, 12, 15)).astype(np.uint8)
    ours = kinds.swap_pixels_behind_glass(images, draws(4), reach, rounds)
    for image, swapped, generator in zip(images, ours, draws(4), strict=True):
        expected = image.copy()
        height, width = image.shape[1:]
        per_round = (height - 2 * reach) * (width - 2 * reach)
        steps = generator.integers(-reach, reach, (2, rounds * per_round), dtype=np.int8).T
        following = iter(steps.astype(int))
        for _ in range(rounds):
            for row in range(height - reach, reach, -1):
                for column in range(width - reach, reach, -1):
                    down, right = next(following)
                    here, there = expected[:, row, column], expected[:, row + down, column + right]
                    here[:], there[:] = there.copy(), here.copy()
        np.testing.assert_array_equal(swapped, expected)


@pytest.mark.parametrize("angle", [0.0, 31.0, -45.0, 90.0, -100.0])
def test_motion_of_a_point_is_its_trail(angle: float) -> None:
    steps, weights = kinds.motion_kernel(angle, 5, 2.5)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(weights[1:] / weights[0], np.exp(-(np.arange(1, 11) ** 2) / 12.5))
    radians = np.radians(angle)
    exact = np.arange(11)[:, None] * [np.sin(radians), np.cos(radians)]
    assert np.abs(steps - exact).max() <= 0.5 + 1e-9
    point = np.zeros((1, 1, 41, 41), np.float32)
    point[..., 20, 20] = 1
    expected = np.zeros((41, 41))
    np.add.at(expected, tuple((20 - steps).T), weights)
    found = kinds.smear(point, np.array([angle]), 5, 2.5)[0, 0]
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_motion_beyond_the_edge_sees_the_edge() -> None:
    images = pictures(1, 9, 9)
    _, weights = kinds.motion_kernel(0.0, 10, 4.0)
    padded = np.pad(images[0], ((0, 0), (0, 0), (0, 20)), mode="edge").astype(float)
    expected = sum(w * padded[..., i : i + 9] for i, w in enumerate(weights))
    found = kinds.smear(images, np.array([0.0]), 10, 4.0)[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("factor", [1.06, 1.3, 4.5])
@pytest.mark.parametrize("length", [32, 224])
def test_zoom_is_that_of_scipy_about_the_middle(factor: float, length: int) -> None:
    image = pictures(1, length, length)[0, 0].astype(np.float64)
    kept = int(np.ceil(length / factor))
    first = (length - kept) // 2
    crop = image[first : first + kept, first : first + kept]
    enlarged = ndimage.zoom(crop, factor, order=1)
    trim = (len(enlarged) - length) // 2
    expected = enlarged[trim : trim + length, trim : trim + length]
    matrix = kinds.zoom_blur_matrix(factor, length)
    np.testing.assert_allclose(matrix @ image @ matrix.T, expected, atol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)


def test_zoom_blur_averages_all_steps_and_the_image() -> None:
    images = pictures(2, 32, 32)
    steps = [kinds.zoom_blur_matrix(1 + 0.01 * i, 32) for i in range(7)]
    np.testing.assert_allclose(steps[0], np.eye(32), atol=1e-12)
    expected = (images + sum(step @ images @ step.T for step in steps)) / 8
    np.testing.assert_allclose(kinds.zoom_blur(images, [], 1.06, 0.01), expected, atol=1e-6)


SMOOTHING = [*GROUPS["blur"], "pixelate", "elastic_transform", "contrast"]


@pytest.mark.parametrize("corruption", SMOOTHING)
@pytest.mark.parametrize("side", [32, 100])
def test_an_even_image_stays_as_it_is(corruption: str, side: int) -> None:
    colours = np.array([[0, 255, 7], [200, 128, 31]], np.uint8)
    images = np.broadcast_to(colours[:, :, None, None], (2, 3, side, side)).copy()
    for severity in SEVERITIES:
        np.testing.assert_array_equal(corrupt(images, corruption, severity, [0, 1]), images)


def test_snow_without_flakes_whitens() -> None:
    images = pictures()
    white = kinds.snow(images, draws(3), 0.1, 0.3, 1.5, 9.0, 5, 2.0, clear=0.7)
    lightness = 0.299 * images[:, :1] + 0.587 * images[:, 1:2] + 0.114 * images[:, 2:]
    expected = 0.7 * images + 0.3 * np.maximum(images, 1.5 * lightness + 0.5)
    np.testing.assert_allclose(white, expected, atol=1e-6)


def test_flakes_fall_from_both_sides() -> None:
    black = flat(0, 4, 40)
    snowy = kinds.snow(black, draws(4), 0.3, 0.3, 2.0, 0.6, 6, 3.0, clear=1.0)
    np.testing.assert_allclose(snowy, snowy[..., ::-1, ::-1], atol=1e-6)
    assert 0.01 < snowy.mean() < 0.9
    # They are gray and longer than wide: more alike below each other than beside.
    np.testing.assert_array_equal(snowy[:, 0], snowy[:, 2])
    assert np.abs(np.diff(snowy, axis=2)).mean() < np.abs(np.diff(snowy, axis=3)).mean()


def test_frost_is_a_piece_of_a_pane_over_the_image() -> None:
    frosted = kinds.frost(pictures(), draws(3), 0.8, 0.5)
    pieces = np.stack([frost.crop_frost(generator, 20, 26) for generator in draws(3)])
    np.testing.assert_allclose(frosted, 0.8 * pictures() + 0.5 * pieces, atol=1e-6)
    assert pieces.min() >= 0
    assert pieces.max() <= 1


def test_panes_are_always_the_same_and_unlike_each_other() -> None:
    panes = frost.grow_frost_panes(32)
    assert panes.shape == (5, 96, 96)
    again = frost.grow_frost_panes.__wrapped__(32)
    np.testing.assert_array_equal(panes, again)
    correlations = np.corrcoef(panes.reshape(5, -1)) - np.eye(5)
    assert np.abs(correlations).max() < 0.2
    # Thin ice here, thick there, and nowhere so much that nothing is seen.
    assert (panes.mean(axis=(1, 2)) > 0.15).all()
    assert (panes.mean(axis=(1, 2)) < 0.35).all()


def naive_plasma(noise: np.ndarray, decay: float) -> np.ndarray:
    """Make clouds point by point, around the edges."""
    size = len(noise)
    clouds = np.zeros_like(noise)
    step, amplitude = size, 1.0
    while step >= 2:
        half = step // 2

        def mean(row: int, column: int, steps: list[tuple[int, int]]) -> float:
            return float(np.mean([clouds[(row + r) % size, (column + c) % size] for r, c in steps]))

        diagonal = [(r, c) for r in (-half, half) for c in (-half, half)]
        straight = [(-half, 0), (half, 0), (0, -half), (0, half)]
        for row in range(half, size, step):
            for column in range(half, size, step):
                grain = amplitude * noise[row, column]
                clouds[row, column] = mean(row, column, diagonal) + grain
        for row in range(0, size, half):
            for column in range((row + half) % step, size, step):
                grain = amplitude * noise[row, column]
                clouds[row, column] = mean(row, column, straight) + grain
        step, amplitude = half, amplitude / decay**2
    return (clouds - clouds.min()) / np.ptp(clouds)


@pytest.mark.parametrize("decay", [1.4, 3.0])
def test_clouds_are_made_of_diamonds_and_squares(decay: float) -> None:
    ours = kinds.plasma_clouds(draws(3), 16, decay)
    for clouds, generator in zip(ours, draws(3), strict=True):
        noise = generator.uniform(-1, 1, (16, 16))
        np.testing.assert_allclose(clouds, naive_plasma(noise, decay), atol=1e-6)


def test_fog_keeps_below_the_brightest_value() -> None:
    images = 0.7 * pictures(3, 32, 32)
    foggy = kinds.fog(images, draws(3), 2.0, 2.0)
    clouds = kinds.plasma_clouds(draws(3), 32, 2.0)[:, None]
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    expected = (images + 2 * clouds) * brightest / (brightest + 2)
    np.testing.assert_allclose(foggy, expected, atol=1e-6)
    assert (foggy <= brightest + 1e-6).all()
    np.testing.assert_allclose(kinds.fog(images, draws(3), 0.0, 2.0), images, atol=1e-6)
    assert (kinds.fog(flat(0), draws(8), 1.0, 2.0) == 0).all()


@pytest.mark.parametrize("added", [0.05, 0.5])
def test_brightness_is_that_of_colorsys(added: float) -> None:
    colours = np.array([(r, g, b) for r in SMOOTH for g in SMOOTH for b in SMOOTH] + [(0, 0, 0)])
    images = colours.T[None, :, None].astype(np.float32)
    expected = []
    for colour in colours:
        hue, saturation, value = colorsys.rgb_to_hsv(*colour)
        expected.append(colorsys.hsv_to_rgb(hue, saturation, min(value + added, 1)))
    found = kinds.brightness(images, [], added)[0, :, 0].T
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_contrast_shrinks_each_channel_about_its_mean() -> None:
    images = pictures().astype(np.float64)
    changed = kinds.contrast(images, [], 0.3)
    np.testing.assert_allclose(changed.mean((2, 3)), images.mean((2, 3)), rtol=1e-7)
    np.testing.assert_allclose(changed.std((2, 3)), 0.3 * images.std((2, 3)), rtol=1e-6)
    assert np.corrcoef(changed[0, 0].ravel(), images[0, 0].ravel())[0, 1] > 1 - 1e-12


@pytest.mark.parametrize("moved", [(3, -2), (0, 4)])
def test_a_triangle_that_moves_takes_the_image_with_it(moved: tuple[int, int]) -> None:
    grid = np.indices((20, 26), np.float64)
    places = kinds._elastic_shear_positions(grid, np.broadcast_to(moved, (3, 2)))
    np.testing.assert_allclose(places, grid - np.array(moved)[:, None, None], atol=1e-9)
    # Its corners go where they are moved.
    steps = np.array([[2, 1], [-3, 2], [1, -2]])
    places = kinds._elastic_shear_positions(np.indices((30, 30), np.float64), steps)
    for corner, step in zip([(25, 25), (5, 25), (5, 5)], steps, strict=True):
        row, column = np.array(corner) + step
        np.testing.assert_allclose(places[:, row, column], corner, atol=1e-9)


@pytest.mark.parametrize(("amplitude", "smoothing"), [(2.56, 1.92), (29.28, 2.44)])
def test_displacements_have_the_size_of_smoothed_noise(amplitude: float, smoothing: float) -> None:
    fields = kinds.displacement_fields(draws(20), (64, 64), amplitude, smoothing)
    inside = fields[..., 12:-12, 12:-12]
    # A Gaussian weighs uniform noise, of deviation 1 / sqrt(3), by a sum of squares of
    # 1 / (4 pi smoothing ** 2); cut off at 3 deviations it is higher by under 1 %.
    expected = amplitude / sqrt(3) / (2 * smoothing * sqrt(np.pi))
    assert inside.std() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pixelate_is_that_of_pillow(severity: int) -> None:
    side = int(32 * corruption_parameters("pixelate", severity, 32)["share"])
    assert side == [30, 28, 27, 24, 20][severity - 1]
    changed = corrupt(SHAPES[:5], "pixelate", severity, range(5))
    for image, ours in zip(SHAPES[:5], changed, strict=True):
        picture = Image.fromarray(image.transpose(1, 2, 0))
        small = picture.resize((side, side), Image.Resampling.BOX)
        theirs = np.asarray(small.resize((32, 32), Image.Resampling.BOX))
        np.testing.assert_array_equal(ours.transpose(1, 2, 0), theirs)


@pytest.mark.parametrize(("severity", "quality"), [(1, 80), (2, 65), (3, 58), (4, 50), (5, 40)])
def test_jpeg_is_that_of_pillow(severity: int, quality: int) -> None:
    ours = corrupt(SHAPES[:5], "jpeg_compression", severity, range(5))
    for image, compressed in zip(SHAPES[:5], ours, strict=True):
        file = BytesIO()
        Image.fromarray(image.transpose(1, 2, 0)).save(file, "JPEG", quality=quality)
        np.testing.assert_array_equal(compressed.transpose(1, 2, 0), np.asarray(Image.open(file)))


def test_a_sheet_shows_a_picture_under_every_corruption(tmp_path: Path) -> None:
    picture, sheet = tmp_path / "picture.png", tmp_path / "sheet.png"
    Image.fromarray(SHAPES[0].transpose(1, 2, 0)).resize((50, 40)).save(picture)
    command = [sys.executable, "-m", "vitscope.corruptions", picture, sheet, "--side", "32"]
    subprocess.run(command, check=True, cwd=ROOT)
    with Image.open(sheet) as file:
        assert file.size == (4 * 36, 4 * 50)
    command[3] = tmp_path / "none.png"
    failed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert failed.returncode == 1
    assert failed.stderr.strip().endswith("none.png is not a readable image: repair or remove it.")
    assert "Traceback" not in failed.stderr
