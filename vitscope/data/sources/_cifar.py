"""Read the official CIFAR archives without unpacking them to disk."""

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.archives import checked_members, opened_tar, read_member
from vitscope.data.source import Sample, Source, no_such_split
from vitscope.errors import VitscopeError
from vitscope.files.whole import md5_of, sha256_of

SPLITS = ("train", "test")
SIDE = 32
PIXELS = 3 * SIDE * SIDE

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
# Class names, and the images and labels of each batch.
Content = tuple[list[str], list[tuple[Pixels, Labels]]]


@dataclass(frozen=True)
class FileLayout:
    """The layout of an official archive: its batches, and a member with class names."""

    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str
    read: Callable[[list[bytes]], Content]
    has_pickles: bool = False

    def members(self, split: str) -> tuple[str, ...]:
        return (self.names, *(self.train if split == "train" else self.test))


# The layouts of a data set, by archive name.
Layouts = Mapping[str, FileLayout]


def read_binary_cifar(members: list[bytes], label_bytes: int) -> Content:
    """Read batches with `label_bytes` bytes before each image, the last of which is its label."""
    names, *batches = members
    parts = []
    for batch in batches:
        rows = np.frombuffer(batch, np.uint8).reshape(-1, label_bytes + PIXELS)
        parts.append((rows[:, label_bytes:], rows[:, label_bytes - 1].astype(np.int64)))
    return names.decode("ascii").split(), parts


class Cifar(Source):
    layouts: ClassVar[Layouts]
    # The size and MD5 of each archive.
    published: ClassVar[Mapping[str, Mapping[str, Any]]]

    def __init__(self, source: Mapping[str, Any], split: str, file: Path) -> None:
        if split not in SPLITS:
            raise no_such_split(source["kind"], split, SPLITS)
        name, members = _read_cifar_members(source["kind"], file, split, self.layouts)
        if self.layouts[name].has_pickles:
            _check_that_pickles_are_official(file, name, self.published)
        try:
            self.classes, parts = self.layouts[name].read(members)
            self._pixels = np.concatenate([pixels for pixels, _ in parts])
            self._labels = np.concatenate([labels for _, labels in parts])
        except ValueError as error:
            raise VitscopeError(
                f"{file} is not the official archive {name} ({error}): get it again."
            ) from error
        self.provenance = {"source": name, "source_sha256": sha256_of(file)}

    def __len__(self) -> int:
        return len(self._labels)

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        for index in indices:
            pixels = self._pixels[index].reshape(3, SIDE, SIDE).transpose(1, 2, 0)
            yield Sample(Image.fromarray(np.ascontiguousarray(pixels)), int(self._labels[index]))


def _read_cifar_members(
    kind: str, path: Path, split: str, layouts: Layouts
) -> tuple[str, list[bytes]]:
    """Return the archive's name and a split's members; write nothing to disk."""
    by_folder = {layout.folder: name for name, layout in layouts.items()}
    found: dict[str, bytes] = {}
    archive = None
    with opened_tar(path) as tar:
        for member in checked_members(tar, path):
            folder, _, name = member.name.partition("/")
            archive = by_folder.get(folder, archive)
            if archive is not None and name in layouts[archive].members(split):
                found[name] = read_member(tar, member)
    wanted = layouts[archive].members(split) if archive is not None else ()
    if archive is None or set(wanted) - set(found):
        lacks = ", ".join(name for name in wanted if name not in found) or "their folder"
        raise VitscopeError(
            f"{path} is none of the official archives of {kind} ({' and '.join(layouts)}): it "
            f"lacks {lacks}."
        )
    return archive, [found[name] for name in wanted]


def _check_that_pickles_are_official(
    file: Path, name: str, published: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse pickles of another archive than the published one: pickles run code when read."""
    known = published[name]
    if (file.stat().st_size, md5_of(file)) != (known["size"], known["md5"]):
        raise VitscopeError(
            f"{file} is not the official archive {name}, and holds pickles, which can run code: "
            f"get {' or '.join(other for other in published if other != name)}, which holds none."
        )


def read_pickled_cifar(members: list[bytes], names_key: bytes, labels_key: bytes) -> Content:
    """Read batches from pickled dictionaries, with class names and labels under the given keys.

    This runs what the pickles say: the archive that they are from must be the published one.
    """
    names, *batches = (pickle.loads(member, encoding="bytes") for member in members)
    parts = [(batch[b"data"], np.array(batch[labels_key], np.int64)) for batch in batches]
    return [name.decode("ascii") for name in names[names_key]], parts
