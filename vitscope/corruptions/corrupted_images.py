"""The file of one corruption: images corrupted by vitscope, or read from an official archive."""

import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vitscope.corruptions import SEVERITIES
from vitscope.corruptions.kinds import corrupt
from vitscope.data.source import ImageFiles, Sample
from vitscope.data.sources import folder
from vitscope.data.split import Split, choose_rows_of_split, normalize
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array, format_shape, map_array
from vitscope.files.tensors import TensorFile, TensorWriter

if TYPE_CHECKING:
    from torch import Tensor

Integers = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]

# Height, width and channels of an official image.
SHAPE = (32, 32, 3)
ROWS_PER_WRITE = 256


def tensor_name(severity: int) -> str:
    return f"severity{severity}"


class CorruptedImages:
    def __init__(self, path: Path | str) -> None:
        self._file = TensorFile(path)
        if "corruption" not in self._file.metadata or "rows" not in self._file.names:
            raise VitscopeError(f"{path} holds no corrupted images: delete it and run again.")
        self.corruption = self._file.metadata["corruption"]
        # The rows of the images in the file of their split.
        self.rows: Integers = self._file.array("rows")

    @property
    def severities(self) -> list[int]:
        return [severity for severity in SEVERITIES if tensor_name(severity) in self._file.names]

    def images(self, severity: int) -> Pixels:
        return self._file.array(tensor_name(severity))


def corrupted_batches(
    corrupted: CorruptedImages,
    severity: int,
    batch_size: int,
    mean: Sequence[float],
    std: Sequence[float],
) -> "Iterator[Tensor]":
    """Yield the images corrupted with one severity, normalized, in batches."""
    images = corrupted.images(severity)
    for first in range(0, len(images), batch_size):
        yield normalize(images[first : first + batch_size], mean, std)


class OfficialImages:
    """One corruption of CIFAR-10-C or CIFAR-100-C: all test images in order, once per severity."""

    def __init__(self, path: Path, corruption: str, split: Split, rows: Integers) -> None:
        self._path, self._index = path, split.column("index")
        resize = json.loads(split.metadata["resize"])
        if split.shape[1:] != SHAPE[:2] or resize is not None:
            resized = "" if resize is None else ", resized"
            raise VitscopeError(
                f"data.{split.metadata['dataset']}.corrupted: the images of {path.name} have 32x32 "
                f"pixels, as they came, and those of the data set have "
                f"{format_shape(split.shape[1:])}{resized}: leave `corrupted` out, and vitscope "
                f"corrupts them itself."
            )
        self._pixels, labels = (
            _map_corrupted_member(path, f"{name}.npy") for name in (corruption, "labels")
        )
        self._count = len(self._pixels) // len(SEVERITIES)
        self._check_arrays(corruption, labels)
        self._check_corrupted_labels(labels, split, rows)

    def images(self, rows: Integers, severity: int) -> Pixels:
        theirs = self._index[rows] + self._count * (severity - 1)
        return np.ascontiguousarray(self._pixels[theirs].transpose(0, 3, 1, 2))

    def _check_arrays(self, corruption: str, labels: Array) -> None:
        shape, expected = self._pixels.shape, (self._count * len(SEVERITIES), *SHAPE)
        if self._pixels.dtype != np.uint8 or shape != expected or not self._count:
            raise self._archive_error(
                f"{corruption}.npy holds {self._pixels.dtype} of {format_shape(shape)} and not "
                f"uint8 of {format_shape(SHAPE)} for every image at five severities"
            )
        if labels.dtype.kind not in "iu" or labels.shape != shape[:1]:
            raise self._archive_error(
                f"labels.npy holds {labels.dtype} of {format_shape(labels.shape)} and not a whole "
                f"number for each of the {shape[0]} images of {corruption}.npy"
            )

    def _check_corrupted_labels(self, labels: Array, split: Split, rows: Integers) -> None:
        index = self._index[rows]
        if index.max() >= self._count:
            raise VitscopeError(
                f"{self._path} holds {self._count} test images, and the study measures image "
                f"{index.max()} of its split '{split.metadata['split']}': measure the test split, "
                f"or leave `corrupted` out."
            )
        theirs = labels.reshape(len(SEVERITIES), self._count)[:, index]
        wrong = int((theirs != split.labels[rows]).any(axis=0).sum())
        if wrong:
            raise VitscopeError(
                f"{self._path}: labels.npy tells another class for {wrong} of {len(rows)} images: "
                f"give the archive of the same data set, and as `source` one that has the official "
                f"order."
            )

    def _archive_error(self, found: str) -> VitscopeError:
        return VitscopeError(f"{self._path}: {found}: get the official archive again.")


class OfficialFolders:
    """One corruption of ImageNet-C: a folder for each severity, in it one for each class.

    An image is found by its `index`: the folder of a severity holds the files of the clean images,
    and so lists them in their order.
    """

    def __init__(self, path: Path, split: Split, rows: Integers) -> None:
        self._path, self._split, self._rows = path, split, rows
        self._index = split.column("index")
        self._opened: dict[int, ImageFiles] = {}
        if "source_listing_sha256" not in split.metadata:
            raise VitscopeError(
                f"{path}: its images are found by the order of files, and data."
                f"{split.metadata['dataset']} is no folder of image files: give the clean images "
                f"as a `source` of the kind folder, or leave `corrupted` out."
            )

    def _open_severity(self, severity: int) -> ImageFiles:
        """Return the files of a severity; refuse other images than those of the split."""
        files = folder.open_split({}, "", self._path / str(severity))
        index = self._index[self._rows]
        if index.max() >= len(files):
            raise VitscopeError(
                f"{self._path / str(severity)} holds {len(files)} images, and the study measures "
                f"image {index.max()} of its split '{self._split.metadata['split']}': unpack the "
                f"archive again, and measure the validation images."
            )
        pairs = {*zip(files.labels(index), self._split.labels[self._rows].tolist(), strict=True)}
        ours, theirs = ({*each} for each in zip(*pairs, strict=True))
        if len(ours) != len(pairs) or len(theirs) != len(pairs):
            raise VitscopeError(
                f"{self._path / str(severity)}: its folders put images into other classes than "
                f"data.{self._split.metadata['dataset']}: both need the same files in the same "
                f"folders."
            )
        return files

    def images(self, rows: Integers, severity: int) -> Pixels:
        if severity not in self._opened:
            self._opened[severity] = self._open_severity(severity)
        samples = self._opened[severity].samples(self._index[rows])
        return np.stack([self._read_pixels(sample) for sample in samples])

    def _read_pixels(self, sample: Sample) -> Pixels:
        pixels = np.asarray(sample.image.convert("RGB"))
        if pixels.shape[:2] != self._split.shape[1:]:
            raise VitscopeError(
                f"{sample.name} has {format_shape(pixels.shape[:2])} pixels, and the images of "
                f"data.{self._split.metadata['dataset']} have "
                f"{format_shape(self._split.shape[1:])}: corrupted images are shown as they came, "
                f"so set its `image_size` to theirs, or leave `corrupted` out."
            )
        return pixels.transpose(2, 0, 1)


def _open_official(
    path: Path, corruption: str, split: Split, rows: Integers
) -> OfficialImages | OfficialFolders:
    there = [each for each in (path / corruption, *path.glob(f"*/{corruption}")) if each.is_dir()]
    if there:
        return OfficialFolders(there[0], split, rows)
    if path.is_dir() and any(each.is_dir() for each in path.iterdir()):
        raise VitscopeError(f"{path} has no folder {corruption}: unpack all of ImageNet-C there.")
    return OfficialImages(path, corruption, split, rows)


def _map_corrupted_member(path: Path, name: str) -> Array:
    try:
        if path.is_dir():
            file = path / name
            return map_array(file, 0, file.stat().st_size)
        with tarfile.open(path, "r:") as tar:
            found = [entry for entry in tar if PurePosixPath(entry.name).name == name]
        plain = [entry for entry in found if entry.isreg() and not entry.issparse()]
        if plain:
            return map_array(path, plain[0].offset_data, plain[0].size)
    except FileNotFoundError:
        pass
    except tarfile.TarError as error:
        raise VitscopeError(
            f"{path} is no whole and uncompressed tar archive ({error}): get the official archive "
            f"again, or unpack it and give its folder."
        ) from error
    except OSError as error:
        raise VitscopeError(f"Cannot read {path} ({error.strerror}): make it readable.") from error
    except Exception as error:  # Damaged headers may raise any exception.
        raise VitscopeError(
            f"{path}: {name} is damaged ({error}): get the official archive again."
        ) from error
    raise VitscopeError(f"{path} has no {name}: give the official archive, or its folder.")


def build_corrupted(
    split: Split,
    images: int | None,
    corruption: str,
    severities: Sequence[int],
    seed: int | None,
    path: Path | str,
    official: Path | None = None,
) -> None:
    """Write images of a split under one corruption, computed here or read from `official`."""
    rows = choose_rows_of_split(split, images, seed, "analysis.robustness: the study corrupts")
    archive = official and _open_official(official, corruption, split, rows)
    shape = (len(rows), *split.shape)
    tensors = {tensor_name(severity): ("U8", shape) for severity in severities}
    tensors["rows"] = ("I64", (len(rows),))
    made = "vitscope" if official is None else official.name
    metadata = {**split.metadata, "corruption": corruption, "corrupted_by": made}
    with TensorWriter(path, tensors, metadata) as writer:
        writer.write("rows", 0, rows)
        for first in range(0, len(rows), ROWS_PER_WRITE):
            some = rows[first : first + ROWS_PER_WRITE]
            for severity in severities:
                pixels = (
                    archive.images(some, severity)
                    if archive
                    else corrupt(split.images(some), corruption, severity, some, seed or 0)
                )
                writer.write(tensor_name(severity), first, pixels)
