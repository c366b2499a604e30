from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.refusals import refusal
from tests.helpers.splits import GENERATED, built
from tests.training import recipes
from tests.training.recipes import PLAIN
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter
from vitscope.training.batches import AugmentedImages, write_augmented_batches
from vitscope.training.recipe import training_rows

IMAGES = 120
MEAN, STD = [0.5, 0.4, 0.6], [0.25, 0.2, 0.3]
MORE = {"mixing_probability": 0.5, "randaugment": "rand-m9-n2-mstd0.5", "erasing": 0.25, "shift": 4}
RECIPE = recipes.RECIPE | MORE


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    path = tmp_path_factory.mktemp("shapes32") / "train"
    return built(path, GENERATED, "train", images=IMAGES, seed=0)


def drawn(
    split: Split,
    folder: Path,
    recipe: dict[str, Any] = RECIPE,
    images: int = 100,
    seed: int = 0,
    clean: bool = False,
) -> AugmentedImages:
    path = folder / f"{len(list(folder.iterdir()))}"
    write_augmented_batches(split, recipe, images, seed, path, mean=MEAN, std=STD, clean=clean)
    return AugmentedImages(path)


def rows_of(images: AugmentedImages, split: Split) -> list[int]:
    """Return which image of the split each one is, bit for bit."""
    all_rows = split.normalize(slice(None), MEAN, STD).numpy()
    row_of = {image.tobytes(): row for row, image in enumerate(all_rows)}
    assert len(row_of) == len(split)
    return [row_of[image.numpy().tobytes()] for image in images.rows(0, len(images))[0]]


def test_images_are_as_many_as_asked_for_and_targets_are_probabilities(
    split: Split, tmp_path: Path
) -> None:
    images = drawn(split, tmp_path, images=130)
    pixels, targets = images.rows(0, 130)
    assert len(images) == 130
    assert pixels.shape == (130, 3, 32, 32)
    assert pixels.dtype == targets.dtype == torch.float32
    assert pixels.isfinite().all()
    torch.testing.assert_close(targets.sum(1), torch.ones(130), rtol=0, atol=1e-6)
    # Smoothing by 0.1 leaves a hundredth to every class, and 0.91 to that of an unmixed image.
    torch.testing.assert_close(targets.amin(1), torch.full((130,), 0.01))
    assert targets.max() == pytest.approx(0.91)
    known = {"data_sha256": split.digest, "seed": "0", "clean": "False"}
    assert images.metadata == known | {"drawn_together": str(RECIPE["batch_size"])}


def test_the_seed_fixes_the_bytes_whatever_was_drawn_before(split: Split, tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        torch.rand(7)
        write_augmented_batches(split, RECIPE, 60, seed, tmp_path / name, mean=MEAN, std=STD)
    one, two, other = ((tmp_path / name).read_bytes() for name in ("one", "two", "other"))
    assert one == two
    assert one != other


def test_without_augmentation_images_are_those_of_the_split(split: Split, tmp_path: Path) -> None:
    """Three batches of 40 are an epoch of 120 images: each image once, in an order of chance."""
    images = drawn(split, tmp_path, PLAIN | {"batch_size": 40}, images=250)
    rows = rows_of(images, split)
    assert sorted(rows[:120]) == sorted(rows[120:240]) == list(range(120))
    assert rows[:120] != rows[120:240]
    assert rows[:120] != sorted(rows[:120])
    targets = images.rows(0, 250)[1].numpy()
    expected = np.full((250, 10), 0.01, np.float32)
    expected[np.arange(250), split.labels[rows]] = 0.91
    np.testing.assert_allclose(targets, expected, rtol=1e-6)


def test_images_that_were_not_trained_on_are_not_drawn(split: Split, tmp_path: Path) -> None:
    recipe = PLAIN | {"images": 50, "seed": 5}
    images = drawn(split, tmp_path, recipe, images=150)
    expected = training_rows(split, recipe).tolist()
    assert Counter(rows_of(images, split)) == dict.fromkeys(expected, 3)


def test_batches_have_a_draw_each_and_small_ones_begin_large_ones(
    split: Split, tmp_path: Path
) -> None:
    mixed = PLAIN | {"batch_size": 30, "mixup": 0.8, "mixing_probability": 1.0}
    images = drawn(split, tmp_path, mixed, images=120)
    for number in range(4):
        pixels, targets = images.batch(number, 30, 30)
        torch.testing.assert_close(pixels, images.rows(30 * number, 30 * number + 30)[0])
        for size in (1, 6, 16):
            few, of_few = images.batch(number, size, 30)
            torch.testing.assert_close(few, pixels[:size], rtol=0, atol=0)
            torch.testing.assert_close(of_few, targets[:size], rtol=0, atol=0)
    # One share of mixup in each batch, another one in the next. Pairs of one class add up.
    shares = [images.batch(number, 6, 30)[1].amax(1).mode().values.item() for number in range(4)]
    assert len({round(each, 5) for each in shares}) == 4
    # Small batches alone still begin a draw each, and large ones take as many draws as they need.
    torch.testing.assert_close(images.batch(2, 6, 6)[0], images.rows(60, 66)[0])
    torch.testing.assert_close(images.batch(1, 50, 50)[0], images.rows(60, 110)[0])


def test_batches_that_are_not_mixed_follow_each_other(split: Split, tmp_path: Path) -> None:
    for clean in (True, False):
        images = drawn(split, tmp_path, PLAIN | {"batch_size": 30}, images=60, clean=clean)
        assert images.metadata["drawn_together"] == "1"
        torch.testing.assert_close(images.batch(3, 2, 6)[0], images.rows(18, 20)[0])


@pytest.mark.parametrize(
    "change",
    [
        {"shift": 4},
        {"shift": 4, "border": "black"},
        {"crop": [0.3, 0.9]},
        {"color_jitter": 0.4},
        {"flip": True},
        {"randaugment": "rand-m9-n2-mstd0.5"},
        {"erasing": 1.0},
        {"mixup": 0.8, "mixing_probability": 1.0},
        {"cutmix": 1.0, "mixing_probability": 1.0},
    ],
)
def test_each_part_of_the_recipe_changes_images(
    split: Split, tmp_path: Path, change: dict[str, Any]
) -> None:
    plain = drawn(split, tmp_path, PLAIN).rows(0, 100)[0]
    changed = drawn(split, tmp_path, PLAIN | change).rows(0, 100)[0]
    assert ((plain != changed).flatten(1).any(1)).float().mean() > 0.2


def test_clean_images_are_as_they_are_with_their_labels(split: Split, tmp_path: Path) -> None:
    images = drawn(split, tmp_path, images=70, clean=True)
    rows = rows_of(images, split)
    assert rows == sorted(set(rows))
    targets = images.rows(0, 70)[1].numpy()
    np.testing.assert_array_equal(targets, np.eye(10, dtype=np.float32)[split.labels[rows]])
    assert images.metadata["clean"] == "True"
    assert rows_of(drawn(split, tmp_path, images=70, seed=1, clean=True), split) != rows


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"batch_size": 122}, "batch_size is 122 and there are 120 images to draw from: lower it"),
        ({"randaugment": "rand-x3"}, "randaugment is 'rand-x3'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    split: Split, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        drawn(split, tmp_path, RECIPE | change)
    said = refusal(drawn, split, tmp_path, images=121, clean=True)
    assert "the loss of 121 images as they are, and there are 120: lower" in said
    assert list(tmp_path.iterdir()) == []


def test_labels_must_be_known(tmp_path: Path) -> None:
    unlabelled = built(tmp_path / "sample", {"kind": "sample"}, "train", seed=0, resize=32)
    for clean in (True, False):
        with pytest.raises(VitscopeError, match=r"data.mine: 1 of 1 images have no label"):
            drawn(unlabelled, tmp_path, clean=clean)


def test_another_file_is_refused(tmp_path: Path) -> None:
    with TensorWriter(tmp_path / "file", {"images": ("F32", (0, 1))}, {}):
        pass
    with pytest.raises(VitscopeError, match="holds no augmented images: delete it and run again"):
        AugmentedImages(tmp_path / "file")
