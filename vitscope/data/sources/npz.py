"""Images in the arrays of an .npz file."""

import zipfile
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.source import Sample, Source
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.errors import VitscopeError, nearest
from vitscope.files.arrays import Array, read_npy_header
from vitscope.files.images import LARGEST_IMAGE
from vitscope.files.whole import sha256_of

SOURCE: dict[str, Any] = {
    "meaning": (
        "8-bit arrays `images`, (N, H, W, 3), (N, H, W, 1) or (N, H, W), and `labels`, which may "
        "lack"
    ),
    "shared": ("path",),
    "required": ("path",),
}

Shape = tuple[int, ...]

IMAGES, LABELS = "images.npy", "labels.npy"
# The compression methods of numpy.savez, and the largest factor by which each expands data.
METHODS = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
MOST_IMAGES = 100_000_000


class Npz(Source):
    def __init__(self, source: Mapping[str, Any], split: str, file: Path) -> None:
        self._path, self.classes = file, []
        try:
            with zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                if "images" not in names:
                    raise VitscopeError(
                        f"{file} has no array 'images'; it has {', '.join(names[:20]) or 'none'}."
                        f"{nearest('images', names)}"
                    )
                images = _checked_npz_member(archive, IMAGES)
                with archive.open(images) as stored:
                    self._shape = _read_npz_image_shape(stored)
                if prod(self._shape) > images.file_size:
                    raise ValueError(f"{images.file_size} bytes for images {self._shape}")
                labels = _checked_npz_member(archive, LABELS) if "labels" in names else None
                self._labels = _read_npz_labels(archive, labels, self._shape[0])
        except VitscopeError:
            raise
        except Exception as error:  # Damaged bytes may raise any exception.
            raise self._unreadable(error) from error
        self.provenance = {"source": file.name, "source_sha256": sha256_of(file)}

    def __len__(self) -> int:
        return self._shape[0]

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield images with their labels, holding one image in memory at a time."""
        size, position = prod(self._shape[1:]), 0
        shape = self._shape[1:] if self._shape[3:] == (3,) else self._shape[1:3]
        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(IMAGES) as file:
                _read_npz_image_shape(file)
                for index in indices:
                    # A compressed member must be read from its start, so read skipped images too.
                    for _ in range(position, index):
                        file.read(size)
                    row = np.frombuffer(file.read(size), np.uint8).reshape(shape)
                    yield Sample(Image.fromarray(row), int(self._labels[index]))
                    position = index + 1
        except Exception as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> VitscopeError:
        return VitscopeError(
            f"{self._path} is not an .npz of uint8 images and whole-numbered labels ({error}): "
            f"save it again, with numpy.savez."
        )


def _checked_npz_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Return the entry of a member; refuse a stated size that its bytes cannot expand to."""
    member = archive.getinfo(name)
    expansion = METHODS.get(member.compress_type, 0)
    if member.file_size > expansion * member.compress_size:
        raise ValueError(f"{name} would expand to {member.file_size} bytes")
    return member


def _read_npz_image_shape(file: IO[bytes]) -> Shape:
    shape, by_column, dtype = read_npy_header(file)
    is_images = len(shape) in {3, 4} and shape[3:] in {(), (1,), (3,)} and min(shape[1:]) > 0
    if dtype != np.uint8 or by_column or not is_images or not 0 <= shape[0] <= MOST_IMAGES:
        raise ValueError(f"images are {dtype} {shape}")
    if prod(shape[1:3]) > LARGEST_IMAGE:
        raise ValueError(f"images have {prod(shape[1:3])} pixels")
    return shape


def _read_npz_labels(archive: zipfile.ZipFile, member: zipfile.ZipInfo | None, count: int) -> Array:
    """Read the label of each image; without a member of labels, all are unknown."""
    if member is None:
        return np.full(count, UNKNOWN_LABEL)
    with archive.open(member) as file:
        shape, _, dtype = read_npy_header(file)
        if dtype.kind not in "iu" or prod(shape) != count:
            raise ValueError(f"labels are {dtype} {shape}")
        return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)


open_split = Npz
