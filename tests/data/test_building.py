"""Splits as they are built, against torchvision, and what goes wrong with a data set."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.helpers.splits import write_folder
from vitscope.data.building import build, preprocess
from vitscope.data.sources.shapes32 import draw
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.networks.building.timm_import import declare


def dataset(source: dict[str, Any], classes: int = 10, **others: Any) -> dict[str, Any]:
    entry = {
        "source": source,
        "classes": classes,
        "image_size": 32,
        "resize": None,
        "interpolation": "bicubic",
        "splits": {"test": {"images": 300, "seed": 0}},
    }
    return entry | others


GENERATED = {"kind": "shapes32", "seed": 0}


def test_images_of_another_size_are_the_same_by_position(tmp_path: Path) -> None:
    labels, seen = [], []
    for size, path in ((32, tmp_path / "as they are"), (64, tmp_path / "twice as large")):
        build("shapes32", dataset(GENERATED, image_size=size, resize=size), "test", path)
        tensors = safetensors.numpy.load_file(path)
        labels.append(tensors["labels"])
        images = tensors["images"].astype(float).reshape(300, 3, 32, size // 32, 32, size // 32)
        seen.append(images.mean(axis=(3, 5)).reshape(300, -1))
    np.testing.assert_array_equal(*labels)
    # Each is most like itself.
    small, large = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in seen)
    np.testing.assert_array_equal((small @ large.T).argmax(axis=1), np.arange(300))


def pictures(folder: Path, *sizes: tuple[int, int], mode: str = "RGB") -> dict[str, Any]:
    """Write images of random pixels to a flat folder, and return the source."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for index, (width, height) in enumerate(sizes):
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(folder / f"{index}.png")
    return {"kind": "folder", "path": str(folder)}


@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(20, 90),
    height=st.integers(20, 90),
    size=st.integers(8, 20),
    more=st.integers(0, 30),
    interpolation=st.sampled_from(["bilinear", "bicubic"]),
    resized=st.booleans(),
)
def test_preprocessing_is_that_of_torchvision(
    width: int, height: int, size: int, more: int, interpolation: str, resized: bool
) -> None:
    declare()
    from torchvision import transforms
    from torchvision.transforms import InterpolationMode

    rng = np.random.default_rng(width * height)
    image = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    resize = size + more if resized else None
    steps = [transforms.CenterCrop(size), transforms.PILToTensor()]
    if resize is not None:
        steps.insert(0, transforms.Resize(resize, InterpolationMode(interpolation)))
    expected = transforms.Compose(steps)(image).numpy()
    entry = dataset({}, image_size=size, resize=resize, interpolation=interpolation)
    np.testing.assert_array_equal(preprocess(image, entry, "it"), expected)


def test_an_artefact_holds_the_chosen_images_and_what_is_known_of_them(tmp_path: Path) -> None:
    path = tmp_path / "test.safetensors"
    entry = dataset(GENERATED, splits={"test": {"images": 300, "seed": 5}})
    build("shapes", entry, "test", path)
    # The official library reads the file as well.
    arrays = safetensors.numpy.load_file(path)
    rows = arrays["index"]
    assert len(set(rows)) == 300
    assert list(rows) == sorted(rows)
    drawn = draw("test", rows, seed=0)
    np.testing.assert_array_equal(arrays["images"], drawn.pixels.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(arrays["labels"], drawn.labels)
    split = Split(path)
    np.testing.assert_array_equal(split.column("shape"), drawn.shapes)
    np.testing.assert_array_equal(split.column("texture"), drawn.textures)
    assert split.classes[0] == "striped disk"
    assert split.metadata["source"] == "shapes32"
    assert (split.metadata["dataset"], split.metadata["split"]) == ("shapes", "test")


def test_the_same_entry_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        build("shapes", dataset(GENERATED), "test", path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert Split(paths[0]).digest == Split(paths[1]).digest


def test_the_digest_is_of_every_image_and_label(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8)
    labels = np.arange(4)
    upside_down = images.copy()
    upside_down[3] = images[3, ::-1]
    kinds = [(images, labels), (upside_down, labels), (images[::-1], labels), (images, labels % 3)]
    digests = []
    for each, (pixels, classes) in enumerate(kinds):
        np.savez(tmp_path / "data.npz", images=pixels, labels=classes)
        splits = {"test": {"images": None, "seed": None}}
        entry = dataset({"kind": "npz", "path": str(tmp_path / "data.npz")}, splits=splits)
        build("arrays", entry, "test", tmp_path / f"{each}.safetensors")
        digests.append(Split(tmp_path / f"{each}.safetensors").digest)
    assert len({*digests}) == len(kinds)


def test_memory_does_not_grow_with_the_number_of_images(tmp_path: Path) -> None:
    images = np.zeros((1500, 64, 64, 3), np.uint8)
    np.savez(tmp_path / "data.npz", images=images)
    entry = dataset({"kind": "npz", "path": str(tmp_path / "data.npz")}, image_size=64)
    peaks = []
    for count in (600, 1500):
        entry["splits"]["test"]["images"] = count
        tracemalloc.start()
        build("arrays", entry, "test", tmp_path / "test.safetensors")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + images[:50].nbytes


ALL = {"test": {"images": None, "seed": None}}


def test_labels_follow_the_names_that_the_study_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    splits = {"test": {"images": 60, "seed": None}}
    build("shapes", dataset(GENERATED, splits=splits), "test", tmp_path / "drawn")
    drawn = Split(tmp_path / "drawn")
    source = write_folder(drawn, tmp_path / "images")
    capsys.readouterr()

    def labels_of(**keys: Any) -> dict[bytes, int]:
        build("own", dataset(source, splits=ALL) | keys, "test", tmp_path / "own")
        own = Split(tmp_path / "own")
        assert len(own.classes) == keys.get("classes", 10)
        return {own.images([row])[0].tobytes(): own.labels[row] for row in range(60)}

    true = {drawn.images([row])[0].tobytes(): drawn.labels[row] for row in range(60)}
    assert labels_of(class_names=drawn.classes) == true
    counts = np.bincount(drawn.labels)
    said = capsys.readouterr().out
    assert said.startswith("data.own.splits.test: classes: 0 striped disk (")
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

    source = pictures(tmp_path / "flat", (40, 40))
    image = {"bytes": (tmp_path / "flat" / "0.png").read_bytes()}
    facts = '{"info": {"features": {"label": {"names": ["ant", "bee"]}}}}'
    table = pa.table({"image": [image], "label": [2]})
    pq.write_table(table.replace_schema_metadata({"huggingface": facts}), tmp_path / "data.parquet")
    source = {"kind": "parquet", "path": str(tmp_path / "data.parquet")}
    entry = dataset(source, classes=9, class_index={"ant": 4, "bee": 8}, splits=ALL)
    with pytest.raises(VitscopeError, match=r"has the label 2 and names 2 classes, which are"):
        build("own", entry, "test", tmp_path / "own")


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
def test_images_of_every_mode_become_grey(tmp_path: Path, mode: str) -> None:
    """Grey images keep their values, whatever the file; others become as light as they are."""
    source = pictures(tmp_path / "flat", (40, 36), mode=mode)
    entry = dataset(source, classes=3, channels=1, splits=ALL)
    build("flat", entry, "test", tmp_path / "test")
    split = Split(tmp_path / "test")
    assert split.shape == (1, 32, 32)
    with Image.open(tmp_path / "flat" / "0.png") as image:
        expected = np.asarray(image.convert("RGB").convert("L"))[2:34, 4:36]
        if mode == "L":
            np.testing.assert_array_equal(expected, np.asarray(image)[2:34, 4:36])
    np.testing.assert_array_equal(split.images([0])[0, 0], expected)
    (batch,) = split.batches([0], 1, [0.4], [0.2])
    wanted = (expected.astype(np.float32) / 255 - np.float32(0.4)) / np.float32(0.2)
    np.testing.assert_array_equal(batch[0, 0].numpy(), wanted)


def test_grey_arrays_and_grey_parquet_are_the_same_images(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pictures(tmp_path / "flat", (32, 32), (32, 32), mode="L")
    files = sorted((tmp_path / "flat").iterdir())
    arrays = np.stack([np.asarray(Image.open(file)) for file in files])
    np.savez(tmp_path / "data.npz", images=arrays, labels=[0, 1])
    rows = [{"bytes": file.read_bytes()} for file in files]
    pq.write_table(pa.table({"image": rows, "label": [0, 1]}), tmp_path / "data.parquet")
    for kind in ("npz", "parquet"):
        source = {"kind": kind, "path": str(tmp_path / f"data.{kind}")}
        entry = dataset(source, classes=2, channels=1, splits=ALL)
        build("grey", entry, "test", tmp_path / "test")
        split = Split(tmp_path / "test")
        np.testing.assert_array_equal(split.images([0, 1])[:, 0], arrays)
        assert split.labels.tolist() == [0, 1]


def test_images_without_labels(tmp_path: Path) -> None:
    source = pictures(tmp_path / "flat", (40, 60), (50, 35), mode="L")
    path = tmp_path / "test.safetensors"
    splits = {"test": {"images": None, "seed": 0}}
    build("flat", dataset(source, classes=3, resize=34, splits=splits), "test", path)
    split = Split(path)
    assert (len(split), *split.shape) == (2, 3, 32, 32)
    assert split.labels.tolist() == [-1, -1]
    assert split.classes == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"classes": 7},
            "the source has 10 classes and the study says 7: correct `classes` of the data set.",
        ),
        (
            {"classes": 1000},
            "the source has 10 classes and the study says 1000: correct `classes` of the data "
            "set, say in `class_index` which number each has, or put all images in one folder, "
            "without labels.",
        ),
        ({"splits": {"test": {"images": 10_001, "seed": 0}}}, "asks for 10001 images and .* 10000"),
    ],
)
def test_a_source_that_is_not_what_the_study_says(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(VitscopeError, match=rf"data\.shapes\.splits\.test: .*{sentence}"):
        build("shapes", dataset(GENERATED) | changes, "test", tmp_path / "test.safetensors")
    assert not list(tmp_path.iterdir())


def test_without_classes_no_label_is_looked_at(tmp_path: Path) -> None:
    images = np.zeros((4, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "data.npz", images=images, labels=np.arange(4) * 1000)
    source = {"kind": "npz", "path": str(tmp_path / "data.npz")}
    path = tmp_path / "split"
    entry = dataset(source, splits={"test": {"images": None, "seed": None}})
    build("mine", entry | {"classes": None}, "test", path)
    split = Split(path)
    assert split.classes == []
    assert split.labels[:].tolist() == [-1] * 4


def test_labels_beyond_the_classes(tmp_path: Path) -> None:
    images = np.zeros((4, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "data.npz", images=images, labels=[0, 1, 2, 3])
    entry = dataset({"kind": "npz", "path": str(tmp_path / "data.npz")}, classes=3)
    entry["splits"]["test"]["images"] = None
    with pytest.raises(VitscopeError, match="has the label 3 and the study says 3 classes"):
        build("arrays", entry, "test", tmp_path / "test.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]


def test_an_image_that_is_too_small(tmp_path: Path) -> None:
    source = pictures(tmp_path / "flat", (40, 31))
    entry = dataset(source, splits={"test": {"images": None, "seed": 0}})
    sentence = r"data\.flat\.splits\.test: an image of 40x31 pixels is smaller than image_size 32"
    with pytest.raises(VitscopeError, match=sentence):
        build("flat", entry, "test", tmp_path / "test.safetensors")
