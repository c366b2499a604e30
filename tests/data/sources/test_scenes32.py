import numpy as np
import pytest

from vitscope.data.sources.scenes32 import AMPLITUDES, CLASSES, SIZE, Scenes32, draw_scene


def drawn(count: int, split: str = "test", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    pixels, labels = zip(*(draw_scene(split, index, seed) for index in range(count)), strict=True)
    return np.stack(pixels), np.array(labels)


def test_an_image_depends_on_its_index_and_not_on_its_company() -> None:
    source = Scenes32({"seed": 3}, "train")
    many = [*source.samples(np.arange(20))]
    (few,) = source.samples(np.array([13]))
    np.testing.assert_array_equal(few.image, many[13].image)
    assert few.label == many[13].label


@pytest.mark.parametrize(("split", "seed"), [("test", 3), ("train", 4)])
def test_splits_and_seeds_have_nothing_in_common(split: str, seed: int) -> None:
    one, other = drawn(100, "train", 3), drawn(100, split, seed)
    # By chance, one label in a hundred is the same.
    assert np.mean(one[1] == other[1]) < 0.06
    flat = [images.reshape(100, -1) - images.reshape(100, -1).mean(1)[:, None] for images in
            (one[0], other[0])]  # fmt: skip
    cosines = (flat[0] * flat[1]).sum(1) / np.linalg.norm(flat[0], axis=1)
    assert abs(np.mean(cosines / np.linalg.norm(flat[1], axis=1))) < 0.1


def test_every_class_is_as_likely() -> None:
    counts = np.bincount(drawn(4000)[1], minlength=len(CLASSES))
    assert len(counts) == 100
    # Four thousand images, a hundred classes: 4.5 standard deviations.
    np.testing.assert_allclose(counts, 40, atol=4.5 * np.sqrt(40))


def test_power_falls_with_frequency_as_that_of_photographs_does() -> None:
    """As f to the -3.1, about as CIFAR-100 (-3.3); shapes32 has -1.9."""
    gray = drawn(600)[0].mean(axis=3)
    window = np.hanning(SIZE)
    spectrum = np.fft.fft2((gray - gray.mean((1, 2), keepdims=True)) * np.outer(window, window))
    power = (np.abs(spectrum) ** 2).mean(axis=0)
    axis = np.fft.fftfreq(SIZE, 1 / SIZE)
    ring = np.hypot(axis[:, None], axis).round().astype(int)
    radii = np.arange(1, SIZE // 2)
    falls = [power[ring == radius].mean() for radius in radii]
    slope = np.polyfit(np.log(radii), np.log(falls), 1)[0]
    assert slope == pytest.approx(-3.1, abs=0.15)


def test_images_have_the_spectrum_of_their_class() -> None:
    """What a class has in its powers beyond all others is what its images have, on average."""
    pixels, labels = drawn(4000)
    gray = pixels.mean(axis=3)
    power = np.log(np.abs(np.fft.rfft2(gray - gray.mean((1, 2), keepdims=True))) ** 2 + 1)
    measured = np.stack([power[labels == label].mean(axis=0) for label in range(len(CLASSES))])
    said = 2 * np.log(AMPLITUDES)
    flat = [(each - each.mean(axis=0)).reshape(len(CLASSES), -1) for each in (measured, said)]
    nearest = np.corrcoef(*flat)[: len(CLASSES), len(CLASSES) :].argmax(axis=1)
    # By chance, one in a hundred.
    assert np.mean(nearest == np.arange(len(CLASSES))) > 0.9
