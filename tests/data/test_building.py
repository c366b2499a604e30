import tracemalloc
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.helpers.pictures import as_png
from tests.helpers.splits import GENERATED, arrays, built, write_folder
from vitscope.data.building import UnstoredSplit, open_split_file, preprocess
from vitscope.data.sources.shapes32 import draw_shapes
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import find_family
from vitscope.networks.building.timm_import import declare_torchvision_operators
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.batches import Batches, seeded
from vitscope.training.loop import train


def test_images_of_another_size_are_the_same_by_position(tmp_path: Path) -> None:
    labels, seen = [], []
    for size in (32, 64):
        sizes = {"image_size": size, "resize": size}
        split = built(tmp_path / str(size), GENERATED, images=300, seed=0, **sizes)
        labels.append(split.labels)
        images = split.images(slice(None)).astype(float)
        images = images.reshape(300, 3, 32, size // 32, 32, size // 32)
        seen.append(images.mean(axis=(3, 5)).reshape(300, -1))
    np.testing.assert_array_equal(*labels)
    # Each is most like itself.
    small, large = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in seen)
    np.testing.assert_array_equal((small @ large.T).argmax(axis=1), np.arange(300))


def pictures(folder: Path, *sizes: tuple[int, int], mode: str = "RGB") -> dict[str, Any]:
    """Write images of random pixels to a flat folder, and return the source."""
    folder.mkdir()
    for index, size in enumerate(sizes):
        noise(*size).convert(mode).save(folder / f"{index}.png")
    return {"kind": "folder", "path": str(folder)}


def preprocessed(image: Image.Image, size: Any, resize: Any, interpolation: str) -> np.ndarray:
    entry = {"image_size": size, "resize": resize, "interpolation": interpolation}
    return preprocess(image, entry, "it")


def by_torchvision(image: Image.Image, size: Any, resize: Any, interpolation: str) -> np.ndarray:
    declare_torchvision_operators()
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode

    steps = [transforms.CenterCrop(size), transforms.PILToTensor()]
    if resize is not None:
        steps.insert(0, transforms.Resize(resize, InterpolationMode(interpolation)))
    return transforms.Compose(steps)(image).numpy()


def noise(width: int, height: int) -> Image.Image:
    rng = np.random.default_rng(width * height)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


SIDE, SIZE = st.integers(20, 90), st.integers(8, 20)
INTERPOLATION = st.sampled_from(["bilinear", "bicubic"])


@settings(max_examples=40)
@given(SIDE, SIDE, SIZE, st.none() | st.integers(0, 30), INTERPOLATION)
def test_preprocessing_is_that_of_torchvision(
    width: int, height: int, size: int, more: int | None, interpolation: str
) -> None:
    wanted = (size, None if more is None else size + more, interpolation)
    image = noise(width, height)
    expected = by_torchvision(image, *wanted)
    np.testing.assert_array_equal(preprocessed(image, *wanted), expected)


@settings(max_examples=40)
@given(SIDE, SIDE, SIZE, SIZE, INTERPOLATION)
def test_a_height_and_a_width_are_just_covered(
    width: int, height: int, high: int, wide: int, interpolation: str
) -> None:
    image, cut = noise(width, height), [high, wide]
    scale = max(Fraction(high, height), Fraction(wide, width))
    covering = [int(height * scale), int(width * scale)]
    expected = by_torchvision(image, cut, covering, interpolation)
    np.testing.assert_array_equal(preprocessed(image, cut, "cover", interpolation), expected)


@settings(max_examples=40)
@given(SIDE, SIDE, SIZE, SIZE, st.integers(0, 30), st.integers(0, 30), INTERPOLATION)
def test_images_are_resized_to_a_height_and_a_width_whatever_their_proportion(
    width: int, height: int, high: int, wide: int, down: int, across: int, interpolation: str
) -> None:
    image, wanted = noise(width, height), ([high, wide], [high + down, wide + across])
    expected = by_torchvision(image, *wanted, interpolation)
    np.testing.assert_array_equal(preprocessed(image, *wanted, interpolation), expected)


def test_an_artefact_holds_the_chosen_images_and_what_is_known_of_them(tmp_path: Path) -> None:
    path = tmp_path / "test.safetensors"
    split = built(path, GENERATED, images=300, seed=5)
    # The official library reads the file as well.
    arrays = safetensors.numpy.load_file(path)
    rows = arrays["index"]
    assert len(set(rows)) == 300
    assert list(rows) == sorted(rows)
    drawn = draw_shapes("test", rows, seed=0)
    np.testing.assert_array_equal(arrays["images"], drawn.pixels.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(arrays["labels"], drawn.labels)
    np.testing.assert_array_equal(split.column("shape"), drawn.shapes)
    np.testing.assert_array_equal(split.column("texture"), drawn.textures)
    assert split.classes[0] == "striped disk"
    assert split.metadata["source"] == "shapes32"
    assert (split.metadata["dataset"], split.metadata["split"]) == ("mine", "test")


def test_the_digest_is_of_every_image_and_label(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8)
    labels = np.arange(4)
    upside_down = images.copy()
    upside_down[3] = images[3, ::-1]
    kinds = [(images, labels), (upside_down, labels), (images[::-1], labels), (images, labels % 3)]
    digests = []
    for each, (pixels, classes) in enumerate(kinds):
        source = arrays(tmp_path / "data.npz", pixels, classes)
        digests.append(built(tmp_path / f"{each}.safetensors", source).digest)
    assert len({*digests}) == len(kinds)


def test_memory_does_not_grow_with_the_number_of_images(tmp_path: Path) -> None:
    images = np.zeros((1500, 64, 64, 3), np.uint8)
    source = arrays(tmp_path / "data.npz", images)
    peaks = []
    for count in (600, 1500):
        tracemalloc.start()
        built(tmp_path / "test", source, images=count, seed=0, image_size=64)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + images[:50].nbytes


def test_labels_follow_the_names_that_the_study_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = built(tmp_path / "drawn", GENERATED, images=60)
    source = write_folder(drawn, tmp_path / "images")
    capsys.readouterr()

    def labels_of(**keys: Any) -> dict[bytes, int]:
        own = built(tmp_path / "own", source, **keys)
        assert len(own.classes) == keys.get("classes", 10)
        return {own.images([row])[0].tobytes(): own.labels[row] for row in range(60)}

    true = {drawn.images([row])[0].tobytes(): drawn.labels[row] for row in range(60)}
    assert labels_of(class_names=drawn.classes) == true
    counts = np.bincount(drawn.labels)
    said = capsys.readouterr().out
    assert said.startswith("data.mine.splits.test: classes: 0 striped disk (")
    assert f"9 {drawn.classes[9]} ({counts[9]} images)\n" in said
    index = {name: 7 * number + 3 for number, name in enumerate(drawn.classes)}
    mapped = labels_of(class_index=index, classes=100)
    assert mapped == {image: 7 * label + 3 for image, label in true.items()}
    assert Split(tmp_path / "own").classes[3:5] == ["striped disk", "4"]
    by_name = labels_of()
    order = sorted(drawn.classes)
    assert by_name == {image: order.index(drawn.classes[n]) for image, n in true.items()}


def test_numbers_beyond_the_names_of_a_source_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    image = {"bytes": as_png(np.zeros((40, 40, 3), np.uint8))}
    facts = '{"info": {"features": {"label": {"names": ["ant", "bee"]}}}}'
    table = pa.table({"image": [image], "label": [2]})
    pq.write_table(table.replace_schema_metadata({"huggingface": facts}), tmp_path / "data.parquet")
    source = {"kind": "parquet", "path": str(tmp_path / "data.parquet")}
    with pytest.raises(VitscopeError, match=r"has the label 2 and names 2 classes, which are"):
        built(tmp_path / "own", source, classes=9, class_index={"ant": 4, "bee": 8})


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_images_of_every_mode_become_grey(tmp_path: Path, mode: str) -> None:
    """Grey images keep their values, whatever the file; others become as light as they are."""
    source = pictures(tmp_path / "flat", (40, 36), mode=mode)
    split = built(tmp_path / "test", source, classes=3, channels=1)
    assert split.shape == (1, 32, 32)
    with Image.open(tmp_path / "flat" / "0.png") as image:
        expected = np.asarray(image.convert("RGB").convert("L"))[2:34, 4:36]
        if mode == "L":
            np.testing.assert_array_equal(expected, np.asarray(image)[2:34, 4:36])
    np.testing.assert_array_equal(split.images([0])[0, 0], expected)
    (batch,) = split.batches([0], 1, [0.4], [0.2])
    wanted = (expected.astype(np.float32) / 255 - np.float32(0.4)) / np.float32(0.2)
    np.testing.assert_array_equal(batch[0, 0].numpy(), wanted)


def test_images_without_labels(tmp_path: Path) -> None:
    source = pictures(tmp_path / "flat", (40, 60), (50, 35), mode="L")
    split = built(tmp_path / "test", source, seed=0, classes=3, resize=34)
    assert (len(split), *split.shape) == (2, 3, 32, 32)
    assert split.labels.tolist() == [-1, -1]
    assert split.classes == ["0", "1", "2"]


def test_labels_beyond_the_classes(tmp_path: Path) -> None:
    """They are refused; without classes, no label is looked at."""
    source = arrays(tmp_path / "data.npz", np.zeros((4, 32, 32, 3), np.uint8), [0, 1, 2, 3])
    with pytest.raises(VitscopeError, match="has the label 3 and the study says 3 classes"):
        built(tmp_path / "split", source, classes=3)
    assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]
    split = built(tmp_path / "split", source, classes=None)
    assert (split.classes, split.labels.tolist()) == ([], [-1] * 4)


def test_every_file_that_cannot_be_used_is_named_at_once(tmp_path: Path) -> None:
    source = pictures(tmp_path / "images", (40, 50), (40, 31), (40, 40), (64, 64), (50, 50))
    folder = tmp_path / "images"
    (folder / "2.png").write_text("no image")
    whole = (folder / "3.png").read_bytes()
    (folder / "3.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(VitscopeError) as refused:
        built(tmp_path / "split", source, classes=None)
    assert str(refused.value) == (
        "data.mine.splits.test: 3 of 5 images cannot be used; without them write `images: 2`, or "
        f"fewer: {folder}/1.png of 40x31 pixels is smaller than image_size 32: set `resize` of the "
        f"data set to at least 32, {folder}/2.png is not a readable image: repair or remove it, "
        f"{folder}/3.png is not a readable image: repair or remove it."
    )
    for name in "123":
        (folder / f"{name}.png").unlink()
    assert len(built(tmp_path / "split", source, classes=None).labels) == 2


def test_images_that_are_too_small_and_masks_of_another_size(tmp_path: Path) -> None:
    source = pictures(tmp_path / "small", (40, 31))
    sentence = r"data\.mine\.splits\.test: \S+/0\.png of 40x31 pixels is smaller than image_size 32"
    with pytest.raises(VitscopeError, match=sentence):
        built(tmp_path / "split", source)
    source = pictures(tmp_path / "images", (40, 50))
    Image.new("L", (50, 40), 255).save(tmp_path / "images/0.mask.png")
    with pytest.raises(VitscopeError, match=r"a mask has 50x40 pixels and its image 40x50: give"):
        built(tmp_path / "split", source, classes=None)


def test_masks_are_cut_as_their_images_are(tmp_path: Path) -> None:
    """A mask that is the image itself, in grey, comes out as the image in grey does."""
    source = pictures(tmp_path / "images", (40, 50), (60, 45), mode="L")
    (tmp_path / "images/1.mask.png").write_bytes((tmp_path / "images/1.png").read_bytes())
    for resize in (36, [36, 40], "cover"):
        split = built(tmp_path / "split", source, classes=None, resize=resize)
        assert len(split) == 2
        assert split.mask(0) is None
        np.testing.assert_array_equal(255 * split.mask(1), split.images([1])[0, 0])


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


def test_images_that_are_not_stored(folder: Path, tmp_path: Path) -> None:
    """They are those of a stored split; pictures are whole; a folder that changed is refused."""
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
    files = [*sorted((folder / "a").iterdir()), *sorted((folder / "b").iterdir())]
    for picture, file in zip(split.pictures(slice(None)), files, strict=True):
        np.testing.assert_array_equal(picture, np.asarray(Image.open(file)))
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


def test_the_whole_of_images_that_are_cut(tmp_path: Path) -> None:
    """The middle of the whole is the image; of images that nothing resizes it is not kept."""
    source = pictures(tmp_path / "images", (40, 50), (60, 45), (64, 64))
    for stored in (True, False):
        splits = {"test": {"images": None, "seed": None, "stored": stored}}
        for resize, sizes in {36: [(45, 36), (36, 48), (36, 36)], None: [None] * 3}.items():
            split = built(tmp_path / "split", source, classes=None, resize=resize, splits=splits)
            wholes = [split.whole(row) for row in range(3)]
            assert [None if each is None else each.shape[:2] for each in wholes] == sizes
            for row, whole in enumerate(wholes):
                if whole is not None:
                    top, left = (round((side - 32) / 2) for side in whole.shape[:2])
                    cut = whole[top : top + 32, left : left + 32]
                    np.testing.assert_array_equal(cut, split.images([row])[0].transpose(1, 2, 0))
