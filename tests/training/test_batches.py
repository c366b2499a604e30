import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.splits import GENERATED, built
from tests.training.recipes import MEAN, PLAIN, RECIPE, STD, flip
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.training.augmentation import (
    augmentation,
    color_jittering,
    cropping,
    erasing,
    mixing,
    shift_and_flip,
)
from vitscope.training.batches import Batches, seeded, workers_for_batches

IMAGES = 200


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    path = tmp_path_factory.mktemp("shapes32") / "train"
    return built(path, GENERATED, "train", images=IMAGES, seed=0)


def test_an_epoch_shows_every_image_once_with_its_label(split: Split) -> None:
    recipe = PLAIN | {"batch_size": 30, "label_smoothing": 0.0}
    drawn = Batches(split, recipe, 0, MEAN, STD)
    shown, again = (list(drawn.ahead(epoch, epoch + 1, 0)) for epoch in (0, 1))
    assert [len(targets) for _, targets in shown] == [30] * 6
    as_they_are = split.normalize(slice(None), MEAN, STD).numpy()
    by_values = {
        image.tobytes(): label for image, label in zip(as_they_are, split.labels, strict=True)
    }
    pairs = [pair for images, targets in shown for pair in zip(images, targets, strict=True)]
    assert len({image.numpy().tobytes() for image, _ in pairs}) == 180
    assert all(by_values[image.numpy().tobytes()] == target.argmax() for image, target in pairs)
    assert not torch.equal(shown[0][0], again[0][0])


def same(one: list[tuple[Tensor, Tensor]], two: list[tuple[Tensor, Tensor]]) -> bool:
    pairs = zip(one, two, strict=True)
    return all(torch.equal(a, b) for batch in pairs for a, b in zip(*batch, strict=True))


def test_batches_are_the_same_from_any_number_of_processes_and_any_epoch_on(split: Split) -> None:
    recipe = RECIPE | {"erasing": 0.5, "mixing_probability": 1.0, "batch_size": 45}
    drawn = Batches(split, recipe, 7, MEAN, STD)
    here = list(drawn.ahead(0, 3, 0))
    assert len(here) == 3 * drawn.steps == 12
    assert same(list(drawn.ahead(0, 3, 1)), here)
    assert same(list(drawn.ahead(1, 3, 2)), here[4:])
    assert same([drawn.draw(2, 3)], here[11:])
    # Every epoch and step has numbers of its own, and so has every seed.
    assert len({images.numpy().tobytes() for images, _ in here}) == 12
    other = Batches(split, recipe, 8, MEAN, STD)
    assert not torch.equal(other.draw(0, 0)[0], here[0][0])


CPU = torch.device("cpu")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_device_finishes_the_batches_that_the_processor_begins(
    split: Split, workers: int
) -> None:
    """Without chance in the second half they are those of the processor; here it is the device."""
    recipe = RECIPE | {"erasing": 0.0, "mixup": 0.0, "cutmix": 0.0, "batch_size": 45}
    drawn = Batches(split, recipe, 7, MEAN, STD)
    whole = list(drawn.ahead(0, 3, 0))
    assert same(list(drawn.ahead(0, 3, workers, CPU)), whole)
    assert same(list(drawn.ahead(2, 3, workers, CPU)), whole[8:])
    pixels, _ = drawn.draw(0, 0, finish=False)
    assert (pixels.dtype, pixels.shape) == (torch.uint8, (45, 32, 32, 3))


def test_chance_on_a_device_is_of_the_seed_the_epoch_and_the_step(split: Split) -> None:
    recipe = PLAIN | {"erasing": 0.5, "batch_size": 45, "shift": 2, "flip": True}
    drawn = Batches(split, recipe, 7, MEAN, STD)
    whole, found = list(drawn.ahead(0, 3, 0)), list(drawn.ahead(0, 3, 0, CPU))
    assert same(list(drawn.ahead(1, 3, 2, CPU)), found[4:])
    unerased = Batches(split, recipe | {"erasing": 0.0}, 7, MEAN, STD)
    shares, alike = [], []
    for (images, targets), (theirs, their_targets) in zip(found, whole, strict=True):
        # The first half has the same chance: what neither erased is the same, in other places.
        assert torch.equal(targets, their_targets)
        alike.append(float((images == theirs).float().mean()))
        clean, _ = unerased.draw(*divmod(len(shares), 4))
        erased = (images != clean).flatten(1).any(1)
        shares.append(float(erased.float().mean()))
    assert len(set(shares)) > 3
    # Of 540 images half, within four standard deviations.
    assert np.mean(shares) == pytest.approx(0.5, abs=4 * 0.5 / 540**0.5)
    # Rectangles of a third of an image at most, in half of the images, and in two draws.
    assert 0.6 < np.mean(alike) < 0.97
    mixing_too = Batches(split, recipe | {"mixup": 0.8, "mixing_probability": 1.0}, 7, MEAN, STD)
    shown = [targets.amax(1) for _, targets in mixing_too.ahead(0, 1, 0, CPU)]
    # Each batch has a share of its own; the last of an odd number is not mixed.
    assert len({round(float(largest[0]), 5) for largest in shown}) == 4
    assert all(float(largest[-1]) == pytest.approx(0.91) for largest in shown)


@pytest.mark.parametrize("device", [None, CPU])
@pytest.mark.parametrize("workers", [0, 1])
def test_damage_is_told_in_one_sentence_by_any_process(
    tmp_path: Path, workers: int, device: torch.device | None
) -> None:
    path = tmp_path / "train"
    split = built(path, GENERATED, "train", images=60, seed=0)
    drawn = Batches(split, PLAIN | {"batch_size": 60}, 0, MEAN, STD)
    flip(path)
    with pytest.raises(VitscopeError, match=r"damaged: image \d+ is not what was written; delete"):
        next(drawn.ahead(0, 1, workers, device))


@pytest.mark.parametrize(("border", "mode"), [("reflection", "reflect"), ("black", "constant")])
def test_augmentation_shifts_and_flips(border: str, mode: Any) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    recipe = PLAIN | {"shift": 1, "flip": True, "border": border}
    augment = augmentation(recipe, MEAN, (32, 32))
    padded = np.pad(pixels, ((1, 1), (1, 1), (0, 0)), mode=mode)
    windows = [padded[y : y + 32, x : x + 32] for y in range(3) for x in range(3)]
    allowed = {image.tobytes() for w in windows for image in (w, w[:, ::-1])}
    with seeded(0):
        found = {image.tobytes() for image in augment(np.stack([pixels] * 300))}
    assert found == allowed


@pytest.mark.parametrize("shape", [(8, 12, 3), (8, 8, 1)])
def test_a_shift_beyond_the_image_is_reflected_again(shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    height, width, _ = shape
    far = 20
    padded = np.pad(pixels, ((far, far), (far, far), (0, 0)), mode="reflect")
    starts = product(range(2 * far + 1), repeat=2)
    windows = {padded[y : y + height, x : x + width].tobytes() for y, x in starts}
    many = np.stack([pixels] * 500)
    with seeded(0):
        found = {image.tobytes() for image in shift_and_flip(many, far, False, "reflection")}
    assert found <= windows
    assert len(found) > 50


@pytest.mark.parametrize("policy", ["rand-m9-n2-mstd0.5", "rand-m9-n3-mstd0.5-inc1"])
def test_a_grey_image_is_augmented_as_the_same_image_in_colour(policy: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (1, 32, 32, 1), dtype=np.uint8)
    recipe = PLAIN | {"randaugment": policy, "shift": 2, "flip": True}
    size = (32, 32)
    grey, colour = augmentation(recipe, [0.4], size), augmentation(recipe, [0.4] * 3, size)
    for seed in range(100):
        with seeded(seed):
            one = grey(pixels)
        with seeded(seed):
            three = colour(pixels.repeat(3, axis=3))
        np.testing.assert_array_equal(three, one.repeat(3, axis=3))


@pytest.mark.parametrize("shares", [[0.08, 1.0], [0.3, 0.5]])
def test_a_crop_has_its_share_of_the_area_and_its_proportions(shares: list[float]) -> None:
    """Of ramps, whose slope after the resizing says how much of each side was taken."""
    ramp = np.broadcast_to(np.arange(240, dtype=np.uint8)[:, None], (240, 240))
    image, crop = np.stack([ramp, ramp.T, ramp], axis=2), cropping(shares, (48, 32))
    areas = []
    with seeded(0):
        for _ in range(200):
            part = crop(image).astype(float)
            assert part.shape == (48, 32, 3)
            # Resizing averages beyond the edge: the slope is that of the middle.
            high = (part[36, 16, 0] - part[12, 16, 0]) / 24 * 48
            wide = (part[24, 24, 1] - part[24, 8, 1]) / 16 * 32
            assert 0.75 * 0.95 < wide / high < 4 / 3 * 1.05
            areas.append(high * wide / 240**2)
    assert shares[0] * 0.9 < min(areas) < shares[0] + 0.1
    assert shares[1] - 0.15 < max(areas) < shares[1] * 1.1


def test_jitter_changes_a_plain_image_by_its_share_at_most() -> None:
    """Contrast and saturation leave one grey as it is; brightness multiplies it."""
    grey, change = np.full((4, 4, 3), 100, np.uint8), color_jittering(0.4)
    with seeded(0):
        found = np.stack([change(grey) for _ in range(300)])
    assert (found == found[:, :1, :1, :1]).all()
    assert 60 <= found.min() < 64
    assert 136 < found.max() <= 140
    assert color_jittering(0) is None


def test_erased_rectangles_are_noise_or_zeros() -> None:
    images = torch.full((40, 3, 16, 16), 2.0)
    with seeded(0):
        zeros = erasing(RECIPE | {"erasing": 1.0, "erased": "zeros"})(images.clone())
    with seeded(0):
        noise = erasing(RECIPE | {"erasing": 1.0})(images.clone())
    erased = zeros != 2
    assert (zeros[erased] == 0).all()
    assert 0.02 < erased.float().mean() < 0.34
    assert float(noise[noise != 2].std()) == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("mixed", [True, False])
def test_targets_are_smoothed_labels(mixed: bool) -> None:
    recipe = PLAIN | ({"mixup": 0.8, "mixing_probability": 0.0} if mixed else {})
    images, labels = torch.zeros(4, 3, 8, 8), torch.tensor([3, 1, 4, 1])
    _, targets = mixing(recipe, 10)(images, labels)
    logits = torch.arange(40.0).view(4, 10).sin()
    loss = nn.functional.cross_entropy(logits, targets)
    expected = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    torch.testing.assert_close(loss, expected)


def test_mixed_images_have_mixed_targets() -> None:
    recipe = RECIPE | {"mixing_probability": 1.0, "label_smoothing": 0.0, "cutmix": 0.0}
    labels = torch.tensor([0, 1])
    images = torch.tensor([0.0, 1.0])[:, None, None, None].expand(2, 3, 8, 8).clone()
    with seeded(0):
        mixed, targets = mixing(recipe, 2)(images, labels)
    # Images show the number of their class: so the mean pixel is the share of class 1.
    torch.testing.assert_close(mixed.mean((1, 2, 3)), targets[:, 1])
    assert 0 < targets[0, 1] < 1


def test_the_last_image_of_an_odd_batch_is_not_mixed() -> None:
    recipe = RECIPE | {"mixing_probability": 1.0}
    images = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([3, 1, 4, 1, 5])
    mix = mixing(recipe, 10)
    with seeded(1):
        mixed, targets = mix(images.clone(), labels)
    with seeded(1):
        pairs, their_targets = mix(images[:4].clone(), labels[:4])
    assert torch.equal(mixed, torch.cat([pairs, images[4:]]))
    assert not torch.equal(pairs, images[:4])
    assert torch.equal(targets[:4], their_targets)
    expected = torch.full((10,), 0.01).index_fill(0, labels[4:], 0.91)
    torch.testing.assert_close(targets[4], expected)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes are not forked here")
@pytest.mark.parametrize(
    ("device", "cores", "threads", "workers"),
    [
        # Where the threads that train leave a core, it augments.
        *[("cpu", 1, 1, 0), ("cpu", 2, 1, 1), ("cpu", 2, 2, 0), ("cpu", 16, 4, 1)],
        # Jobs for a GPU share the cores by their threads.
        *[("cuda", 16, 1, 8), ("cuda", 16, 4, 3), ("cuda", 16, 16, 8)],
        *[("cuda", 4, 1, 3), ("cuda", 4, 8, 3), ("cuda", 1, 1, 0)],
    ],
)
def test_processes_augment_on_cores_that_are_left(
    monkeypatch: pytest.MonkeyPatch, device: str, cores: int, threads: int, workers: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert workers_for_batches(torch.device(device)) == workers
