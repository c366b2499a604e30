import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.helpers.archives import tar_of
from tests.helpers.cifar import CLASSES, old_pickle
from tests.helpers.refusals import refusal
from tests.helpers.registries import Packages
from tests.helpers.sources import open_path
from vitscope.data.sources import cifar10, cifar100
from vitscope.errors import VitscopeError
from vitscope.files.whole import md5_of
from vitscope.networks.building.timm_import import declare_torchvision_operators

ROWS = 4
FOLDERS = {
    ("cifar10", "python"): "cifar-10-batches-py",
    ("cifar10", "binary"): "cifar-10-batches-bin",
    ("cifar100", "python"): "cifar-100-python",
    ("cifar100", "binary"): "cifar-100-binary",
}
NAMES = {
    "cifar10": [f"animal{i}" for i in range(10)],
    "cifar100": [f"thing{i}" for i in range(100)],
}
COARSE = [7, 7, 7, 7]


def batch(seed: int, classes: int) -> tuple[np.ndarray, list[int]]:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (ROWS, 3072), dtype=np.uint8)
    return pixels, rng.integers(0, classes, ROWS).tolist()


def members(kind: str, variant: str) -> dict[str, bytes]:
    names = NAMES[kind]
    files = ["train", "test"]
    if kind == "cifar10":
        files = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    made: dict[str, bytes] = {}
    for seed, file in enumerate(files):
        pixels, labels = batch(seed, len(names))
        if variant == "python":
            key = b"labels" if kind == "cifar10" else b"fine_labels"
            made[file] = old_pickle({b"data": pixels, key: labels, b"coarse_labels": COARSE})
        else:
            label = [[y] if kind == "cifar10" else [7, y] for y in labels]
            made[f"{file}.bin"] = np.hstack([np.array(label, np.uint8), pixels]).tobytes()
    encoded = [name.encode() for name in names]
    if variant == "python":
        meta = "batches.meta" if kind == "cifar10" else "meta"
        key = b"label_names" if kind == "cifar10" else b"fine_label_names"
        made[meta] = old_pickle({key: encoded})
    else:
        meta = "batches.meta.txt" if kind == "cifar10" else "fine_label_names.txt"
        made[meta] = b"\n".join(encoded) + b"\n\n"
    # The official archives do not hold their batches in order.
    return dict(reversed(made.items()))


def archive(path: Path, folder: str, files: dict[str, bytes]) -> Path:
    path.write_bytes(tar_of(folder, files))
    return path


PUBLISHED: dict[str, dict[str, dict[str, Any]]] = {
    "cifar10": cifar10.SOURCE["archive"]["files"],
    "cifar100": cifar100.SOURCE["archive"]["files"],
}


def pickled(path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write an archive of pickles, and declare it to be the published one."""
    archive(path, FOLDERS[kind, "python"], members(kind, "python"))
    name = f"{kind.replace('cifar', 'cifar-')}-python.tar.gz"
    known = {"size": path.stat().st_size, "md5": md5_of(path)}
    monkeypatch.setitem(PUBLISHED[kind], name, known)
    return path


def test_the_published_digests_are_those_that_torchvision_knows() -> None:
    declare_torchvision_operators()
    from torchvision import datasets

    for kind, by_torchvision in (("cifar10", datasets.CIFAR10), ("cifar100", datasets.CIFAR100)):
        assert PUBLISHED[kind][by_torchvision.filename]["md5"] == by_torchvision.tgz_md5


@pytest.mark.parametrize(("kind", "variant"), FOLDERS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_both_variants_of_both_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, variant: str, split: str
) -> None:
    if variant == "python":
        path = pickled(tmp_path / "some.tar.gz", kind, monkeypatch)
    else:
        path = archive(tmp_path / "some.tar.gz", FOLDERS[kind, variant], members(kind, variant))
    seeds = {"cifar10": {"train": range(5), "test": [5]}, "cifar100": {"train": [0], "test": [1]}}
    batches = [batch(seed, len(NAMES[kind])) for seed in seeds[kind][split]]
    pixels = np.concatenate([part for part, _ in batches])
    labels = [label for _, part in batches for label in part]
    source = open_path(kind, path, split)
    assert len(source) == len(labels)
    assert source.classes == NAMES[kind]
    samples = list(source.samples(np.arange(len(source))))
    assert [sample.label for sample in samples] == labels
    for sample, row in zip(samples, pixels, strict=True):
        for channel in range(3):
            expected = row[1024 * channel : 1024 * (channel + 1)].reshape(32, 32)
            np.testing.assert_array_equal(np.asarray(sample.image)[..., channel], expected)


def test_a_batch_that_is_cut(tmp_path: Path) -> None:
    files = members("cifar100", "binary")
    files["test.bin"] = files["test.bin"][:-1]
    path = archive(tmp_path / "some", "cifar-100-binary", files)
    with pytest.raises(VitscopeError, match=r"is not the official archive cifar-100-binary\.tar"):
        open_path("cifar100", path, "test")


@pytest.mark.parametrize("kind", NAMES)
def test_pickles_of_another_archive_are_refused(tmp_path: Path, kind: str) -> None:
    """The sentence names the archive that holds none; tests/security has pickles that do harm."""
    path = archive(tmp_path / "some", FOLDERS[kind, "python"], members(kind, "python"))
    name = kind.replace("cifar", "cifar-")
    assert refusal(open_path, kind, path) == (
        f"{path} is not the official archive {name}-python.tar.gz, and holds pickles, which can "
        f"run code: get {name}-binary.tar.gz, which holds none."
    )


@pytest.mark.parametrize("known", [{"size": 1}, {"md5": "0" * 32}])
def test_pickles_are_those_of_a_size_and_a_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: dict[str, object]
) -> None:
    path = pickled(tmp_path / "some", "cifar100", monkeypatch)
    assert len(open_path("cifar100", path)) == ROWS
    name = "cifar-100-python.tar.gz"
    monkeypatch.setitem(PUBLISHED["cifar100"], name, PUBLISHED["cifar100"][name] | known)
    assert "and holds pickles, which can run code" in refusal(open_path, "cifar100", path)


def test_a_member_that_is_too_large(tmp_path: Path) -> None:
    info = tarfile.TarInfo("cifar-100-binary/test.bin")
    info.size = 300_000_000
    path = tmp_path / "some.tar"
    path.write_bytes(info.tobuf())
    with pytest.raises(VitscopeError, match="of 300000000 bytes, more than any official archive"):
        open_path("cifar100", path, "test")


def test_archives_that_are_damaged_missing_or_another(tmp_path: Path) -> None:
    files = members("cifar100", "binary")
    whole = archive(tmp_path / "whole.tar.gz", "cifar-100-binary", files).read_bytes()
    cut, garbage = tmp_path / "cut.tar.gz", tmp_path / "garbage.tar.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    garbage.write_bytes(b"<html>not found</html>")
    for path in (cut, garbage, tmp_path / "nowhere.tar.gz", tmp_path):
        with pytest.raises(VitscopeError, match="cannot be read as a tar archive"):
            open_path("cifar100", path, "test")
    with pytest.raises(VitscopeError, match=r"none of the official archives of cifar10 .*binary"):
        open_path("cifar10", tmp_path / "whole.tar.gz", "test")
    del files["fine_label_names.txt"]
    path = archive(tmp_path / "less.tar.gz", "cifar-100-binary", files)
    with pytest.raises(VitscopeError, match=r"it lacks fine_label_names\.txt"):
        open_path("cifar100", path, "test")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("split", "count", "first"),
    # The classes of the first images, as everybody sees them.
    [
        ("train", 50_000, [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]),
        ("test", 10_000, [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]),
    ],
)
def test_the_real_images_in_the_official_layout(
    cifar10_archive: Path, split: str, count: int, first: list[int]
) -> None:
    source = open_path("cifar10", cifar10_archive, split)
    assert (len(source), source.classes) == (count, [*CLASSES])
    # By channel, how often each value is.
    counts, labels = np.zeros((3, 256), np.int64), []
    for sample in source.samples(np.arange(count)):
        labels.append(sample.label)
        counts += np.reshape(sample.image.histogram(), (3, 256))
    assert labels[:10] == first
    assert np.bincount(labels).tolist() == [count // 10] * 10
    if split == "train":
        # As everybody normalizes them.
        values, shares = np.arange(256) / 255, counts / counts.sum(1, keepdims=True)
        mean = shares @ values
        assert mean.round(4).tolist() == [0.4914, 0.4822, 0.4465]
        assert np.sqrt(shares @ values**2 - mean**2).round(4).tolist() == [0.247, 0.2435, 0.2616]


@pytest.mark.nightly
def test_the_real_images_are_those_of_others(cifar10_archive: Path, packages: Packages) -> None:
    """The first 20 lie in the package of foolbox as well, with the class in the name."""
    source = open_path("cifar10", cifar10_archive, "test")
    files = sorted((packages.unpacked("foolbox==3.3.4") / "foolbox" / "data").glob("cifar10_*"))
    for sample, file in zip(source.samples(np.arange(20)), files, strict=True):
        assert file.stem.endswith(f"_{sample.label}")
        with Image.open(file) as image:
            np.testing.assert_array_equal(np.asarray(sample.image), np.asarray(image))
