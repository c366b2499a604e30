"""Images in the arrays of a NumPy archive."""

import zipfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy
from PIL import Image

from vitscope.data.source import LARGEST_IMAGE, UNKNOWN_LABEL, Sample
from vitscope.errors import VitscopeError, nearest
from vitscope.files.whole import sha256_of

Shape = tuple[int, ...]

IMAGES, LABELS = "images.npy", "labels.npy"
# The methods of numpy.savez, and how much the second of them can expand at most.
METHODS = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
MOST_IMAGES = 100_000_000


class Npz:
    """The arrays `images`, (n, h, w, 3) or (n, h, w) of bytes, and `labels`, which may lack."""

    extra = ()

    def __init__(self, path: Path) -> None:
        self._path = path
        self.classes: list[str] = []
        try:
            with zipfile.ZipFile(path) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                if "images" not in names:
                    raise VitscopeError(
                        f"{path} has no array 'images'; it has {', '.join(names[:20]) or 'none'}."
                        f"{nearest('images', names)}"
                    )
                with archive.open(_sound(archive, IMAGES)) as file:
                    self._shape = _image_shape(file)
                labels = _sound(archive, LABELS) if "labels" in names else None
                self._labels = _labels(archive, labels, self._shape[0])
        except VitscopeError:
            raise
        except Exception as error:  # Damaged bytes fail in every way there is.
            raise self._unreadable(error) from error
        self.provenance = {"source": path.name, "source_sha256": sha256_of(path)}

    def __len__(self) -> int:
        return self._shape[0]

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield images with their label; no more than one image is in memory."""
        size, position = prod(self._shape[1:]), 0
        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(IMAGES) as file:
                _image_shape(file)
                for index in indices:
                    # A compressed member is read from its start: what is not wanted is passed by.
                    for _ in range(position, index):
                        file.read(size)
                    row = np.frombuffer(file.read(size), np.uint8).reshape(self._shape[1:])
                    yield Sample(Image.fromarray(row), int(self._labels[index]))
                    position = index + 1
        except Exception as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> VitscopeError:
        return VitscopeError(
            f"{self._path} is not an .npz of uint8 images and whole-numbered labels ({error}): "
            f"save it again, with numpy.savez."
        )


def _sound(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Return a member of an archive, if its bytes can become as many as it says."""
    member = archive.getinfo(name)
    expansion = METHODS.get(member.compress_type, 0)
    if member.file_size > expansion * member.compress_size:
        raise ValueError(f"{name} would expand to {member.file_size} bytes")
    return member


def _header(file: IO[bytes]) -> tuple[Shape, bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_column, dtype = read(file)
    return tuple(shape), by_column, dtype


def _image_shape(file: IO[bytes]) -> Shape:
    """Read the header of an array of images and return its shape."""
    shape, by_column, dtype = _header(file)
    pictures = len(shape) in {3, 4} and shape[3:] in {(), (3,)} and min(shape[1:]) > 0
    if dtype != np.uint8 or by_column or not pictures or not 0 <= shape[0] <= MOST_IMAGES:
        raise ValueError(f"images are {dtype} {shape}")
    if prod(shape[1:3]) > LARGEST_IMAGE:
        raise ValueError(f"images have {prod(shape[1:3])} pixels")
    return shape


def _labels(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo | None, count: int
) -> npt.NDArray[Any]:
    """Read as many labels as there are images; without any, no label is known."""
    if member is None:
        return np.full(count, UNKNOWN_LABEL)
    with archive.open(member) as file:
        shape, _, dtype = _header(file)
        if dtype.kind not in "iu" or prod(shape) != count:
            raise ValueError(f"labels are {dtype} {shape}")
        return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)
