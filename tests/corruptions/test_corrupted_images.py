import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.helpers.archives import tar_of
from tests.helpers.splits import arrays, built
from tests.security.bombs import in_memory
from vitscope.corruptions import SEVERITIES, corrupted_images
from vitscope.corruptions.corrupted_images import CorruptedImages, build_corrupted
from vitscope.corruptions.kinds import corrupt
from vitscope.data.sources.shapes32 import draw_shapes
from vitscope.data.split import Split
from vitscope.errors import VitscopeError

COUNT, CHOSEN = 20, 12
DRAWN = draw_shapes("test", np.arange(COUNT), seed=0)


def split_of(folder: Path, **changes: Any) -> Split:
    """Prepare 12 of 20 images, as a study does with a seed."""
    source = arrays(folder / "all.npz", DRAWN.pixels, DRAWN.labels)
    return built(folder / "test.safetensors", source, images=CHOSEN, seed=1, **changes)


@pytest.fixture
def split(tmp_path: Path) -> Split:
    return split_of(tmp_path)


def official_arrays() -> dict[str, np.ndarray]:
    """Return arrays in the official layout: five severities, one below the other."""
    pixels = np.random.default_rng(3).integers(0, 256, (5 * COUNT, 32, 32, 3), dtype=np.uint8)
    return {"fog": pixels, "snow": pixels[::-1].copy(), "labels": np.tile(DRAWN.labels, 5)}


def npy(array: np.ndarray, **options: Any) -> bytes:
    return in_memory(lambda file: np.lib.format.write_array(file, array, **options))


def members(**changes: Any) -> dict[str, bytes]:
    """Return the files of an archive; a change is an array, bytes, or None to leave one out."""
    files = official_arrays() | changes
    return {
        f"{name}.npy": npy(content) if isinstance(content, np.ndarray) else content
        for name, content in files.items()
        if content is not None
    }


def folder_of(path: Path, files: dict[str, bytes]) -> Path:
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def archive_of(path: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    path.write_bytes(tar_of("CIFAR-10-C", files, mode))
    return path


MAKERS: dict[str, Callable[[Path, dict[str, bytes]], Path]] = {
    "CIFAR-10-C.tar": archive_of,
    "CIFAR-10-C": folder_of,
}


def refused(split: Split, path: Path, message: str, corruption: str = "fog") -> None:
    """Let images of an archive be refused, and nothing be written."""
    made = path.parent / "made.safetensors"
    with pytest.raises(VitscopeError, match=message):
        build_corrupted(split, None, corruption, SEVERITIES, 0, made, path)
    assert not made.exists()


@pytest.mark.parametrize("name", MAKERS)
def test_official_images_are_found_by_their_index(tmp_path: Path, split: Split, name: str) -> None:
    path = MAKERS[name](tmp_path / name, members())
    before = sorted(file.name for file in tmp_path.rglob("*"))
    build_corrupted(split, 7, "fog", [5, 2], 0, tmp_path / "fog.safetensors", path)
    made = CorruptedImages(tmp_path / "fog.safetensors")
    assert made.corruption == "fog"
    assert made.severities == [2, 5]
    assert len(made.rows) == 7
    index = split.column("index")[made.rows]
    for severity in (2, 5):
        theirs = official_arrays()["fog"][COUNT * (severity - 1) + index]
        np.testing.assert_array_equal(made.images(severity), theirs.transpose(0, 3, 1, 2))
    # Nothing is unpacked.
    after = sorted(file.name for file in tmp_path.rglob("*"))
    assert after == sorted([*before, "fog.safetensors"])


def test_images_are_written_in_groups(
    tmp_path: Path, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows in (256, 5):
        monkeypatch.setattr(corrupted_images, "ROWS_PER_WRITE", rows)
        build_corrupted(split, None, "fog", SEVERITIES, 0, tmp_path / f"{rows}.safetensors")
    one, other = (tmp_path / f"{rows}.safetensors" for rows in (256, 5))
    assert one.read_bytes() == other.read_bytes()


def test_images_are_corrupted_here_by_row_and_seed(tmp_path: Path, split: Split) -> None:
    build_corrupted(split, 5, "shot_noise", [1, 4], 9, tmp_path / "made.safetensors")
    made = CorruptedImages(tmp_path / "made.safetensors")
    assert made.rows.tolist() == sorted(np.random.default_rng(9).permutation(CHOSEN)[:5].tolist())
    for severity in (1, 4):
        ours = corrupt(split.images(made.rows), "shot_noise", severity, made.rows, seed=9)
        np.testing.assert_array_equal(made.images(severity), ours)


def test_more_images_than_there_are(tmp_path: Path, split: Split) -> None:
    sentence = r"corrupts 13 images and the split 'test' of data\.mine has 12"
    with pytest.raises(VitscopeError, match=sentence):
        build_corrupted(split, 13, "fog", [1], 0, tmp_path / "made.safetensors")


FOG = official_arrays()["fog"]
LABELS = official_arrays()["labels"]
OTHER_LABELS = np.where(np.arange(5 * COUNT) == 2 * COUNT, (LABELS + 1) % 10, LABELS)
DAMAGED: list[tuple[dict[str, Any], str]] = [
    ({"fog": None}, r"has no fog\.npy: give the official archive, or its folder"),
    ({"labels": None}, r"has no labels\.npy"),
    ({"fog": FOG[:-1]}, r"fog\.npy holds uint8 of 99x32x32x3"),
    ({"fog": FOG[..., :2]}, r"fog\.npy holds uint8 of 100x32x32x2"),
    ({"fog": FOG.astype(np.float32)}, r"fog\.npy holds float32 of 100x32x32x3"),
    ({"fog": FOG[:0]}, r"fog\.npy is damaged \(0 bytes for 0x32x32x3 of uint8\)"),
    ({"fog": np.asfortranarray(FOG)}, r"fog\.npy is damaged \(an array of uint8, by column\)"),
    ({"fog": npy(FOG)[:-1]}, r"fog\.npy is damaged \(\d+ bytes for 100x32x32x3 of uint8\)"),
    ({"fog": b"<html>not found</html>"}, r"fog\.npy is damaged \(.*magic.*\): get the official"),
    # Objects could run code when they are read.
    ({"fog": npy(np.array([{}], object), allow_pickle=True)}, r"is damaged \(an array of object"),
    ({"labels": LABELS[:COUNT]}, r"labels\.npy holds int64 of 20 and not a whole number for each"),
    ({"labels": LABELS.astype(float)}, r"labels\.npy holds float64 of 100 and not a whole number"),
    ({"labels": (LABELS + 1) % 10}, r"another class for 12 of 12 images: give the archive of the"),
]


@pytest.mark.parametrize(("changes", "message"), DAMAGED)
def test_what_is_not_official_is_refused(
    tmp_path: Path, split: Split, changes: dict[str, Any], message: str
) -> None:
    # In an archive or a folder, by turns.
    name, make = [*MAKERS.items()][len(message) % 2]
    refused(split, make(tmp_path / name, members(**changes)), message)


def test_one_label_that_differs_at_one_severity(tmp_path: Path) -> None:
    split = split_of(tmp_path, splits={"test": {"images": None, "seed": None}})
    path = folder_of(tmp_path / "CIFAR-10-C", members(labels=OTHER_LABELS))
    refused(split, path, "another class for 1 of 20 images")


@pytest.mark.parametrize("kept", [0.2, 0.9])
def test_archives_that_are_cut_short(tmp_path: Path, split: Split, kept: float) -> None:
    path = archive_of(tmp_path / "CIFAR-10-C.tar", members())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    refused(split, path, r"CIFAR-10-C\.tar.*(get|give) the official archive", "snow")


def test_archives_that_are_compressed_or_none(tmp_path: Path, split: Split) -> None:
    compressed = archive_of(tmp_path / "CIFAR-10-C.tar.gz", members(), "w:gz")
    page = tmp_path / "page.tar"
    page.write_bytes(b"<html>not found</html>" * 100)
    for path in (compressed, page):
        refused(split, path, "no whole and uncompressed tar archive")
    refused(split, tmp_path / "nowhere.tar", r"nowhere\.tar has no fog\.npy")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_in_an_archive_are_not_followed(tmp_path: Path, split: Split, kind: bytes) -> None:
    secret = tmp_path / "secret.npy"
    secret.write_bytes(npy(FOG))
    path = archive_of(tmp_path / "CIFAR-10-C.tar", members(fog=None))
    with tarfile.open(path, "a") as tar:
        info = tarfile.TarInfo("CIFAR-10-C/fog.npy")
        info.type, info.linkname = kind, str(secret)
        tar.addfile(info)
    refused(split, path, r"has no fog\.npy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_size": 28}, r"data\.mine\.corrupted: .*those of the data set have 28x28: leave"),
        ({"image_size": 32, "resize": 40}, "have 32x32, resized: leave `corrupted` out"),
    ],
)
def test_images_of_another_size(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = folder_of(tmp_path / "CIFAR-10-C", members())
    refused(split_of(tmp_path, **changes), path, message)


def test_images_that_the_archive_does_not_hold(tmp_path: Path, split: Split) -> None:
    first = np.arange(5 * COUNT) % COUNT < 8
    few = {name: array[first] for name, array in official_arrays().items()}
    path = folder_of(tmp_path / "CIFAR-10-C", members(**few))
    refused(split, path, r"holds 8 test images, and the study measures image 1\d")


def test_another_file_is_refused(tmp_path: Path, split: Split) -> None:
    with pytest.raises(VitscopeError, match="holds no corrupted images: delete it and run again"):
        CorruptedImages(tmp_path / "test.safetensors")


SIDE, PER_CLASS = 24, {"n01": 3, "n02": 4, "n10": 2}


def imagenet_c(path: Path, offset: int = 0, side: int = SIDE, folders: str = "") -> Path:
    """Write a folder for each class with as many files; each image is of one value of its own."""
    for number, (name, count) in enumerate(PER_CLASS.items()):
        (path / folders / name).mkdir(parents=True, exist_ok=True)
        for image in range(count):
            pixels = np.full((side, side, 3), offset + 10 * number + image, np.uint8)
            Image.fromarray(pixels).save(path / folders / name / f"val_{9 - image}.png")
    return path


def split_of_folder(tmp_path: Path, images: int | None = None) -> Split:
    clean = {"kind": "folder", "path": str(imagenet_c(tmp_path / "val"))}
    changes = {"classes": len(PER_CLASS), "image_size": SIDE}
    return built(tmp_path / "split.safetensors", clean, images=images, seed=1, **changes)


@pytest.mark.parametrize("group", ["", "weather/"])
@pytest.mark.parametrize("images", [None, 5])
def test_imagenet_c_is_found_by_the_order_of_files(
    tmp_path: Path, group: str, images: int | None
) -> None:
    split, root = split_of_folder(tmp_path, images), tmp_path / "ImageNet-C"
    for severity in SEVERITIES:
        imagenet_c(root, 50 * severity - 30, folders=f"{group}fog/{severity}")
    build_corrupted(split, 4, "fog", [5, 2], 0, tmp_path / "fog.safetensors", root)
    made = CorruptedImages(tmp_path / "fog.safetensors")
    assert len(made.rows) == 4
    for severity in (2, 5):
        expected = split.images(made.rows).astype(int) + 50 * severity - 30
        np.testing.assert_array_equal(made.images(severity), expected)


def test_folders_that_are_not_those_of_the_clean_images(tmp_path: Path, split: Split) -> None:
    of_folder, root = split_of_folder(tmp_path), tmp_path / "ImageNet-C"
    for severity in SEVERITIES:
        imagenet_c(root, folders=f"fog/{severity}")
        imagenet_c(root, folders=f"snow/{severity}", side=32)
    refused(of_folder, root, "has 32x32 pixels, and the images of data.mine have 24x24", "snow")
    # By the labels of CIFAR's pickles nothing says which file an image is.
    refused(split, root, r"data\.mine is no folder of image files")
    (root / "fog/3/n01/val_9.png").rename(root / "fog/3/n02/val_0.png")
    refused(of_folder, root, "fog/3: its folders put images into other classes than data.mine")
    (root / "fog/3/n02/val_0.png").unlink()
    refused(of_folder, root, "fog/3 holds 8 images, and the study measures image 8 of its split")
    refused(of_folder, root, "ImageNet-C has no folder frost: unpack all", "frost")
