"""The official CIFAR archives, read without unpacking them to disk or running what they hold."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.archives import confirm
from vitscope.data.source import Sample, no_such_split
from vitscope.errors import VitscopeError, quoted
from vitscope.files.whole import sha256_of

SPLITS = ("train", "test")
SIDE = 32
PIXELS = 3 * SIDE * SIDE
LARGEST_MEMBER = 200_000_000
LARGEST_ARCHIVE = 400_000_000

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
# The names of the classes, and the images and labels of each batch.
Content = tuple[list[str], list[tuple[Pixels, Labels]]]


@dataclass(frozen=True)
class FileLayout:
    """What an official archive holds in its folder: batches, and a member with class names.

    `read` takes the bytes of that member, and then of the batches of a split.
    """

    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str
    read: Callable[[list[bytes]], Content]

    def members(self, split: str) -> tuple[str, ...]:
        """Return the members that make a split."""
        return (self.names, *(self.train if split == "train" else self.test))


# The layouts of a data set, by the names of the archives.
Layouts = Mapping[str, FileLayout]


def read_binary(members: list[bytes], label_bytes: int) -> Content:
    """Read batches in which each image follows its label, the last of `label_bytes`."""
    names, *batches = members
    parts = []
    for batch in batches:
        rows = np.frombuffer(batch, np.uint8).reshape(-1, label_bytes + PIXELS)
        parts.append((rows[:, label_bytes:], rows[:, label_bytes - 1].astype(np.int64)))
    return names.decode("ascii").split(), parts


def open_archive(
    source: Mapping[str, Any],
    split: str,
    path: Path,
    archive: Mapping[str, Any],
    layouts: Layouts,
) -> "Cifar":
    """Open a split of an archive; one that was downloaded must be the official one."""
    if "path" not in source:
        confirm(archive, source, path)
    return Cifar(source["kind"], path, split, layouts)


class Cifar:
    """A split of CIFAR-10 or CIFAR-100."""

    extra = ()

    def __init__(self, kind: str, path: Path, split: str, layouts: Layouts) -> None:
        if split not in SPLITS:
            raise no_such_split(kind, split, SPLITS)
        name, members = _read_members(kind, path, split, layouts)
        try:
            self.classes, parts = layouts[name].read(members)
            self._pixels = np.concatenate([pixels for pixels, _ in parts])
            self._labels = np.concatenate([labels for _, labels in parts])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise VitscopeError(
                f"{path} is not the official archive {name} ({error}): get it again."
            ) from error
        self.provenance = {"source": name, "source_sha256": sha256_of(path)}

    def __len__(self) -> int:
        return len(self._labels)

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield images with their (fine) label."""
        for index in indices:
            pixels = self._pixels[index].reshape(3, SIDE, SIDE).transpose(1, 2, 0)
            yield Sample(Image.fromarray(np.ascontiguousarray(pixels)), int(self._labels[index]))


class _Bounded(gzip.GzipFile):
    """A compressed archive that is refused once it expands to more than an official one."""

    def _check(self, end: int) -> None:
        if end > LARGEST_ARCHIVE:
            raise ValueError(f"it holds more than {LARGEST_ARCHIVE} bytes, as no official one does")

    def read(self, size: int | None = -1) -> bytes:
        # No size, or one below 0, asks for all.
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


def _read_members(kind: str, path: Path, split: str, layouts: Layouts) -> tuple[str, list[bytes]]:
    """Return the name of the archive and the members of a split; nothing is written anywhere."""
    by_folder = {layout.folder: name for name, layout in layouts.items()}
    found: dict[str, bytes] = {}
    archive = None
    try:
        with _open_archive(path) as tar:
            for member in tar:
                _check_member(path, member)
                folder, _, name = member.name.partition("/")
                archive = by_folder.get(folder, archive)
                if archive is not None and name in layouts[archive].members(split):
                    found[name] = _content(tar, member)
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise VitscopeError(
            f"{path} cannot be read as a tar archive ({reason}): get it again or correct the path."
        ) from error
    wanted = layouts[archive].members(split) if archive is not None else ()
    if archive is None or set(wanted) - set(found):
        lacks = ", ".join(name for name in wanted if name not in found) or "their folder"
        raise VitscopeError(
            f"{path} is none of the official archives of {kind} ({' and '.join(layouts)}): it "
            f"lacks {lacks}."
        )
    return archive, [found[name] for name in wanted]


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return b"" if file is None else file.read()


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    """Refuse a member that no official archive has, or that could reach out of its folder."""
    inside = PurePosixPath(member.name)
    if inside.is_absolute() or ".." in inside.parts or not (member.isfile() or member.isdir()):
        raise VitscopeError(
            f"{path} holds {quoted(member.name)}, which is a link or leaves the folder of the "
            f"archive: do not use it, and get the official archive."
        )
    if not 0 <= member.size <= LARGEST_MEMBER:
        raise VitscopeError(
            f"{path} holds {quoted(member.name)} of {member.size} bytes, more than any official "
            f"archive: do not use it, and get the official archive."
        )
