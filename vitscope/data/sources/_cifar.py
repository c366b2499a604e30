"""Read the official CIFAR archives without unpacking them to disk or running pickled code."""

import io
import pickle
import pickletools
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
from vitscope.files.whole import sha256_of

SPLITS = ("train", "test")
SIDE = 32
PIXELS = 3 * SIDE * SIDE

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
# Class names, and the images and labels of each batch.
Content = tuple[list[str], list[tuple[Pixels, Labels]]]
# Several times the number of pickle opcodes in an official batch.
MOST_OPCODES = 1_000_000
# The globals that a pickled array refers to, as module and name.
OF_ARRAYS = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "dtype"), ("numpy", "ndarray")}


@dataclass(frozen=True)
class FileLayout:
    """The layout of an official archive: its batches, and a member with class names."""

    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str
    read: Callable[[list[bytes]], Content]

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

    def __init__(self, source: Mapping[str, Any], split: str, file: Path) -> None:
        if split not in SPLITS:
            raise no_such_split(source["kind"], split, SPLITS)
        name, members = _read_cifar_members(source["kind"], file, split, self.layouts)
        try:
            self.classes, parts = self.layouts[name].read(members)
            self._pixels = np.concatenate([pixels for pixels, _ in parts])
            self._labels = np.concatenate([labels for _, labels in parts])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
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


class _StandIn:
    """A substitute for a pickled array and its types, which keeps the state and calls no NumPy."""

    def __init__(self, *reconstruction: object) -> None:
        self._state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._state = state

    def pixel_rows(self, rows: int) -> Pixels:
        _, _, _, by_column, data = self._state
        if by_column or not isinstance(data, bytes):
            raise ValueError("an array in an unknown order")
        return np.frombuffer(data, np.uint8).reshape(rows, PIXELS)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> object:
        if (module, name) not in OF_ARRAYS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _StandIn


def _unpickle_cifar_batch(data: bytes) -> dict[bytes, Any]:
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if number > MOST_OPCODES:
                raise pickle.UnpicklingError("it has more parts than an official batch")
            # Unpickling allocates a memo up to its highest index.
            if "PUT" in opcode.name and not 0 <= int(argument or 0) <= len(data):
                raise pickle.UnpicklingError(f"it fills place {argument} of its memo")
        value = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # Damaged or malicious bytes may raise any exception.
        raise ValueError(f"a pickle that cannot be read safely: {error}") from error
    if not isinstance(value, dict):
        raise TypeError("a pickle that is no dictionary")
    return value


def read_pickled_cifar(members: list[bytes], names_key: bytes, labels_key: bytes) -> Content:
    """Read batches from pickled dictionaries, with class names and labels under the given keys."""
    names, *batches = (_unpickle_cifar_batch(member) for member in members)
    parts = []
    for batch in batches:
        pixels, labels = batch[b"data"], batch[labels_key]
        if not isinstance(pixels, _StandIn) or not _is_list_of(labels, int):
            raise TypeError("a batch without images or labels")
        parts.append((pixels.pixel_rows(len(labels)), np.array(labels, np.int64)))
    classes = names[names_key]
    if not _is_list_of(classes, bytes):
        raise TypeError("classes without names")
    return [name.decode("ascii") for name in classes], parts


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in value)
