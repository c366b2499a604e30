"""The official CIFAR archives, read without unpacking them to disk or running what they hold."""

import gzip
import io
import pickle
import pickletools
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.source import Sample, no_such_split
from vitscope.errors import VitscopeError
from vitscope.files.strict_yaml import told
from vitscope.files.whole import sha256_of
from vitscope.web.downloads import fetch, md5_of
from vitscope.web.redaction import shown

SPLITS = ("train", "test")
SITE = "https://www.cs.toronto.edu/~kriz/"
SIDE = 32
PIXELS = 3 * SIDE * SIDE
LARGEST_MEMBER = 200_000_000
LARGEST_ARCHIVE = 400_000_000

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


Parts = list[tuple[Pixels, Labels]]


@dataclass(frozen=True)
class Archive:
    """An official archive, and what it is made of.

    `names` is the member with the names of the classes. In the python variant `names_key` and
    `labels_key` are keys of pickled dictionaries; in the binary one the label is the last of
    `label_bytes` before each image.
    """

    file: str
    md5: str
    size: int
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str
    read: "Callable[[Archive, list[bytes]], tuple[list[str], Parts]]"
    names_key: bytes = b""
    labels_key: bytes = b""
    label_bytes: int = 0

    def members(self, split: str) -> tuple[str, ...]:
        """Return the members that make a split."""
        return (self.names, *(self.train if split == "train" else self.test))


class _Array:
    """Stands in for a pickled array: it keeps the bytes, and nothing of NumPy is called."""

    def __init__(self, *reconstruction: object) -> None:
        self._data = b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, _, _, by_column, data = state
        if by_column or not isinstance(data, bytes):
            raise ValueError("an array in an unknown order")
        self._data = data

    def values(self, rows: int) -> Pixels:
        """Return the images, a row each."""
        return np.frombuffer(self._data, np.uint8).reshape(rows, PIXELS)


class _Type:
    """Stands in for the types of a pickled array, which are known."""

    def __init__(self, *description: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


STAND_INS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): _Type,
}


class _Unpickler(pickle.Unpickler):
    """Builds plain values and stand-ins, and finds no other name."""

    def find_class(self, module: str, name: str, /) -> object:
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return STAND_INS[module, name]


def _check_memo(data: bytes) -> None:
    """Refuse places of the memo beyond what the bytes can fill: memory is taken up to the last."""
    for opcode, argument, _ in pickletools.genops(data):
        if "PUT" in opcode.name and not 0 <= int(argument or 0) <= len(data):
            raise pickle.UnpicklingError(f"it fills place {argument} of its memo")


def _unpickle(data: bytes) -> dict[bytes, Any]:
    try:
        _check_memo(data)
        value = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # Damaged or malicious bytes fail in every way there is.
        raise ValueError(f"a pickle that cannot be read safely: {error}") from error
    if not isinstance(value, dict):
        raise TypeError("a pickle that is no dictionary")
    return value


def _read_binary(archive: Archive, members: list[bytes]) -> tuple[list[str], Parts]:
    names, *batches = members
    row = archive.label_bytes + PIXELS
    parts = []
    for batch in batches:
        rows = np.frombuffer(batch, np.uint8).reshape(-1, row)
        labels = rows[:, archive.label_bytes - 1].astype(np.int64)
        parts.append((rows[:, archive.label_bytes :], labels))
    return names.decode("ascii").split(), parts


def _read_python(archive: Archive, members: list[bytes]) -> tuple[list[str], Parts]:
    names, *batches = (_unpickle(member) for member in members)
    parts = []
    for batch in batches:
        pixels, labels = batch[b"data"], batch[archive.labels_key]
        if not isinstance(pixels, _Array) or not _is_list(labels, int):
            raise TypeError("a batch without images or labels")
        parts.append((pixels.values(len(labels)), np.array(labels, np.int64)))
    classes = names[archive.names_key]
    if not _is_list(classes, bytes):
        raise TypeError("classes without names")
    return [name.decode("ascii") for name in classes], parts


def _is_list(value: object, kind: type) -> bool:
    """Tell whether a value is a list of values of one type and no other."""
    return isinstance(value, list) and all(type(item) is kind for item in value)


BATCHES = range(1, 6)
ARCHIVES = {
    ("cifar10", "python"): Archive(
        "cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
        170_498_071,
        "cifar-10-batches-py",
        tuple(f"data_batch_{i}" for i in BATCHES),
        ("test_batch",),
        "batches.meta",
        _read_python,
        names_key=b"label_names",
        labels_key=b"labels",
    ),
    ("cifar10", "binary"): Archive(
        "cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
        170_052_171,
        "cifar-10-batches-bin",
        tuple(f"data_batch_{i}.bin" for i in BATCHES),
        ("test_batch.bin",),
        "batches.meta.txt",
        _read_binary,
        label_bytes=1,
    ),
    ("cifar100", "python"): Archive(
        "cifar-100-python.tar.gz",
        "eb9058c3a382ffc7106e4002c42a8d85",
        169_001_437,
        "cifar-100-python",
        ("train",),
        ("test",),
        "meta",
        _read_python,
        names_key=b"fine_label_names",
        labels_key=b"fine_labels",
    ),
    ("cifar100", "binary"): Archive(
        "cifar-100-binary.tar.gz",
        "03b5dce01913d631647c71ecec9e9cb8",
        168_513_733,
        "cifar-100-binary",
        ("train.bin",),
        ("test.bin",),
        "fine_label_names.txt",
        _read_binary,
        label_bytes=2,
    ),
}


def official(source: Mapping[str, Any], label: str) -> tuple[str, Archive]:
    """Return the address of the official archive of a source, and what it is."""
    kind = source["kind"]
    # By default the binary one, which holds no pickles.
    url = source.get("url", SITE + ARCHIVES[kind, "binary"].file)
    by_name = {archive.file: archive for (of, _), archive in ARCHIVES.items() if of == kind}
    archive = by_name.get(PurePosixPath(urlsplit(url).path).name)
    if archive is None:
        raise VitscopeError(
            f"{label}: {shown(url)} names none of the official archives {' and '.join(by_name)}: "
            f"correct `url`, or leave it out."
        )
    return url, archive


def download(source: Mapping[str, Any], path: Path, *, label: str, **options: Any) -> None:
    """Download the official archive of a source to `path`, from its `url` if it names one."""
    url, archive = official(source, label)
    fetch(
        url,
        path,
        label=label,
        md5=archive.md5,
        size=archive.size,
        said_by="the publisher",
        **options,
    )


def confirm(source: Mapping[str, Any], path: Path) -> None:
    """Refuse a download that is not the official archive: in a cache, nobody here looked at it."""
    _, archive = official(source, str(path))
    if md5_of(path) != archive.md5:
        raise VitscopeError(
            f"{path} is not the official archive {archive.file}, or is damaged: delete it, and if "
            f"it is a link what it leads to, and run again."
        )


class Cifar:
    """A split of CIFAR-10 or CIFAR-100."""

    extra = ()

    def __init__(self, kind: str, path: Path, split: str) -> None:
        if split not in SPLITS:
            raise no_such_split(kind, split, SPLITS)
        archive, members = _read_archive(kind, path, split)
        try:
            self.classes, parts = archive.read(archive, members)
            self._pixels = np.concatenate([pixels for pixels, _ in parts])
            self._labels = np.concatenate([labels for _, labels in parts])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise VitscopeError(
                f"{path} is not the official archive {archive.file} ({error}): get it again."
            ) from error
        self.provenance = {"source": archive.file, "source_sha256": sha256_of(path)}

    def __len__(self) -> int:
        return len(self._labels)

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield images with their (fine) label."""
        for index in indices:
            pixels = self._pixels[index].reshape(3, SIDE, SIDE).transpose(1, 2, 0)
            yield Sample(Image.fromarray(np.ascontiguousarray(pixels)), int(self._labels[index]))


class _Bounded(gzip.GzipFile):
    """A compressed archive of which no more is decompressed than an official one holds."""

    def _check(self, end: int) -> None:
        if end > LARGEST_ARCHIVE:
            raise ValueError(f"it holds more than {LARGEST_ARCHIVE} bytes, as no official one does")

    def read(self, size: int | None = -1) -> bytes:
        # Without a size, or with one below 0, all is meant.
        wanted = LARGEST_ARCHIVE + 1 if size is None or size < 0 else size
        self._check(self.tell() + wanted)
        return super().read(wanted)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check(offset)
        return super().seek(offset, whence)


def _open_archive(path: Path) -> tarfile.TarFile:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    if not compressed:
        return tarfile.open(path, "r:")
    return tarfile.open(fileobj=_Bounded(path), mode="r:")


def _read_archive(kind: str, path: Path, split: str) -> tuple[Archive, list[bytes]]:
    """Read the members of a split, names of the classes first; nothing is written anywhere."""
    variants = {archive.folder: archive for (of, _), archive in ARCHIVES.items() if of == kind}
    found: dict[str, bytes] = {}
    archive = None
    try:
        with _open_archive(path) as tar:
            for member in tar:
                _check_member(path, member)
                folder, _, name = member.name.partition("/")
                archive = variants.get(folder, archive)
                if archive is not None and name in archive.members(split):
                    found[name] = _content(tar, member)
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise VitscopeError(
            f"{path} cannot be read as a tar archive ({reason}): get it again or correct the path."
        ) from error
    wanted = archive.members(split) if archive is not None else ()
    if archive is None or set(wanted) - set(found):
        lacks = ", ".join(name for name in wanted if name not in found) or "their folder"
        raise VitscopeError(
            f"{path} is none of the official archives of {kind} "
            f"({' and '.join(a.file for a in variants.values())}): it lacks {lacks}."
        )
    return archive, [found[name] for name in wanted]


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return b"" if file is None else file.read()


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    """Refuse what no official archive holds and what could reach out of its folder."""
    inside = PurePosixPath(member.name)
    if inside.is_absolute() or ".." in inside.parts or not (member.isfile() or member.isdir()):
        raise VitscopeError(
            f"{path} holds {told(member.name)}, which is a link or leaves the folder of the archive"
            f": do not use it, and get the official archive."
        )
    if not 0 <= member.size <= LARGEST_MEMBER:
        raise VitscopeError(
            f"{path} holds {told(member.name)} of {member.size} bytes, more than any official "
            f"archive: do not use it, and get the official archive."
        )
