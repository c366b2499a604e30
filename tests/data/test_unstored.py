"""Images that stay in their files, and a training that reads them: the recipe for ImageNet."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.splits import built
from vitscope.data.building import UnstoredSplit, open_split_file
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.networks.building.family import find_family
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.batches import Batches, seeded
from vitscope.training.loop import train

STUDY = load_study(BUNDLED_STUDIES / "imagenet.yaml")
DATA = STUDY.data["imagenet"]
MEAN, STD = [*DATA.mean], [*DATA.std]
SIZED = {"image_size": 224, "resize": 256, "interpolation": DATA.interpolation, "classes": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten photographs of two classes, each of another size."""
    rng = np.random.default_rng(0)
    for number in range(10):
        file = tmp_path / "photographs" / "ab"[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (26 + number, 40 - number, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((400 - 10 * number, 260 + 10 * number)).save(file)
    return tmp_path / "photographs"


def unstored(folder: Path, path: Path) -> Split:
    source = {"kind": "folder", "path": str(folder)}
    splits = {"train": {"images": None, "seed": None, "stored": False}}
    return built(path, source, "train", **SIZED, splits=splits)


def test_images_are_those_of_a_stored_split(folder: Path, tmp_path: Path) -> None:
    split = unstored(folder, tmp_path / "unstored")
    source = {"kind": "folder", "path": str(folder)}
    stored = built(tmp_path / "stored", source, "train", **SIZED)
    assert (tmp_path / "unstored").stat().st_size < 2000 < (tmp_path / "stored").stat().st_size
    assert isinstance(split, UnstoredSplit)
    assert type(open_split_file(tmp_path / "stored")) is Split
    assert (split.shape, split.classes, len(split)) == ((3, 224, 224), ["a", "b"], 10)
    np.testing.assert_array_equal(split.labels, stored.labels)
    for rows in (slice(None), [7, 2], slice(3, 5)):
        np.testing.assert_array_equal(split.images(rows), stored.images(rows))


def test_pictures_are_whole(folder: Path, tmp_path: Path) -> None:
    split = unstored(folder, tmp_path / "unstored")
    files = [*sorted((folder / "a").iterdir()), *sorted((folder / "b").iterdir())]
    for picture, file in zip(split.pictures(slice(None)), files, strict=True):
        np.testing.assert_array_equal(picture, np.asarray(Image.open(file)))


def test_a_folder_that_changed_is_refused(folder: Path, tmp_path: Path) -> None:
    unstored(folder, tmp_path / "unstored")
    (folder / "a" / "0.png").unlink()
    with pytest.raises(VitscopeError, match=r"photographs holds other files than when .*: delete"):
        open_split_file(tmp_path / "unstored")


def test_the_recipe_for_imagenet_trains_on_ten_images(folder: Path, tmp_path: Path) -> None:
    """Parts of the whole images, the same from any number of processes, and a step that learns."""
    split = unstored(folder, tmp_path / "unstored")
    recipe = asdict(STUDY.recipe("alternet_50")) | {"batch_size": 5}
    drawn = Batches(split, recipe, 0, MEAN, STD)
    here, there = (list(drawn.ahead(0, 2, workers)) for workers in (0, 2))
    assert len(here) == 4
    for (images, targets), (theirs, its) in zip(here, there, strict=True):
        assert images.shape == (5, 3, 224, 224)
        assert torch.equal(images, theirs)
        assert torch.equal(targets, its)
        torch.testing.assert_close(targets.sum(1), torch.ones(5))
    arch = {**STUDY.models["alternet_50"].arch, "depth": 18, "width": 16, "heads": [1] * 4}
    with seeded(0):
        model = find_family("alternet").build(arch | {"head_dim": 16}, 2, 224)
    short = recipe | {"epochs": 2, "warmup_epochs": 1, "learning_rate": 0.01}
    quiet: dict[str, Any] = {"mean": MEAN, "std": STD, "say": lambda text: None, "workers": 0}
    history = train(model, split, split, short, 0, tmp_path / "trained", **quiet)
    assert [row["epoch"] for row in history] == [1, 2]
    assert history[1]["loss"] < history[0]["loss"]
