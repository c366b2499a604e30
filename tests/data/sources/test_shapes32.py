import numpy as np
import pytest

from vitscope.data.sources import shapes32
from vitscope.data.sources.shapes32 import CLASSES, SHAPES, SIZE, TEXTURES, Shapes32, draw_shapes


def test_an_image_depends_on_its_index_and_not_on_its_company() -> None:
    many = draw_shapes("train", np.arange(40), seed=3)
    few = draw_shapes("train", np.array([31, 7]), seed=3)
    np.testing.assert_array_equal(few.pixels, many.pixels[[31, 7]])
    np.testing.assert_array_equal(few.labels, many.labels[[31, 7]])


@pytest.mark.parametrize(("split", "seed"), [("test", 3), ("train", 4)])
def test_splits_and_seeds_have_nothing_in_common(split: str, seed: int) -> None:
    rows = np.arange(100)
    one, other = draw_shapes("train", rows, seed=3), draw_shapes(split, rows, seed=seed)
    correlations = [
        np.corrcoef(a.ravel(), b.ravel())[0, 1]
        for a, b in zip(one.pixels, other.pixels, strict=True)
    ]
    assert abs(np.mean(correlations)) < 0.05
    assert np.mean(one.labels == other.labels) < 0.3


def test_every_class_is_as_likely() -> None:
    counts = np.bincount(draw_shapes("train", np.arange(1000), seed=0).labels, minlength=10)
    assert len(counts) == len(CLASSES) == len(SHAPES) == len(TEXTURES)
    # One thousand images, ten classes: four standard deviations.
    np.testing.assert_allclose(counts, 100, atol=4 * np.sqrt(90))


def test_one_cue_in_ten_images_misleads_and_the_label_follows_the_other() -> None:
    images = draw_shapes("test", np.arange(1500), seed=0)
    by_shape, by_texture = images.shapes == images.labels, images.textures == images.labels
    assert np.all(by_shape | by_texture)
    misled = ~(by_shape & by_texture)
    assert misled.mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 1500))
    assert by_shape[misled].mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(misled.sum()))


def test_in_the_conflict_split_cues_always_disagree_and_all_pairs_occur() -> None:
    images = draw_shapes("conflict", np.arange(1000), seed=0)
    assert np.all(images.shapes != images.textures)
    np.testing.assert_array_equal(images.labels, images.shapes)
    pairs = set(zip(images.shapes.tolist(), images.textures.tolist(), strict=True))
    assert len(pairs) == 90


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_fit_their_circle_and_have_edges_of_one_pixel(shape: str) -> None:
    step = 0.01
    axis = np.arange(-1.4, 1.4, step)
    x, y = np.meshgrid(axis, axis)
    field = SHAPES[shape](x, y)
    inside = field > 0
    assert np.hypot(x, y)[inside].max() < 1.25
    assert 0.7 < inside.sum() * step**2 < 2.8
    # At the edge the field falls by about 1 per unit: then one pixel of the image blurs it.
    slope = np.hypot(*np.gradient(field, step))
    edge = np.abs(field) < 2 * step
    assert 0.6 < np.median(slope[edge]) < 1.4


def test_no_shape_is_another_one() -> None:
    axis = np.linspace(-1.2, 1.2, 121)
    x, y = np.meshgrid(axis, axis)
    covers = [shape(x, y) > 0 for shape in SHAPES.values()]
    for i, one in enumerate(covers):
        for other in covers[:i]:
            assert (one & other).sum() / (one | other).sum() < 0.9


@pytest.mark.parametrize("texture", TEXTURES)
def test_textures_show_both_colours(texture: str) -> None:
    x, y = np.meshgrid(np.arange(SIZE) / 4, np.arange(SIZE) / 4)
    noise = np.random.default_rng(0).standard_normal((1, 2, SIZE, SIZE))
    field = TEXTURES[texture](x[None] - 4, y[None] - 4, noise)
    assert 0.15 < (field > 0).mean() < 0.85


def test_clouds_have_a_power_law_spectrum() -> None:
    noise = np.random.default_rng(0).standard_normal((400, 3, SIZE, SIZE)).astype(np.float32)
    clouds = shapes32._power_law_noise(noise, np.full((400, 1, 1), 1.0, np.float32))
    power = (np.abs(np.fft.fft2(clouds.mean(1))) ** 2).mean(0)
    # Along one axis, where sampling the frequencies does not bend the line.
    frequency = np.arange(1, SIZE // 2)
    slope = np.polyfit(np.log(frequency), np.log(power[0, 1 : SIZE // 2]), 1)[0]
    assert slope == pytest.approx(-2.0, abs=0.1)


def test_leaves_hide_each_other() -> None:
    """Where leaves cover everything, most neighbouring pixels are of one leaf and alike."""
    leaves = np.random.default_rng(0).random((200, shapes32.LEAVES, 6), dtype=np.float32)
    canvas = shapes32._dead_leaves(leaves)
    steps = np.abs(np.diff(canvas[:, 0], axis=2))
    assert (steps < 1e-6).mean() > 0.6
    assert steps.max() > 0.5


def test_the_source_says_what_it_draws() -> None:
    source = Shapes32({"seed": 1}, "conflict")
    rows = np.array([2, 70, 9_999])
    drawn = draw_shapes("conflict", rows, seed=1)
    samples = list(source.samples(rows))
    assert len(source) == 10_000
    assert source.extra == ("shape", "texture")
    for sample, pixels in zip(samples, drawn.pixels, strict=True):
        np.testing.assert_array_equal(np.asarray(sample.image), pixels)
    assert [sample.label for sample in samples] == drawn.shapes.tolist()
    cues = zip(drawn.shapes, drawn.textures, strict=True)
    assert [sample.extra for sample in samples] == [*cues]
