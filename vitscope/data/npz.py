"""Images in the arrays of a NumPy archive."""

import zipfile
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy
from PIL import Image

from vitscope.data.source import UNKNOWN_LABEL, Sample
from vitscope.errors import VitscopeError, nearest
from vitscope.files import sha256_of

Shape = tuple[int, ...]

IMAGES = "images.npy"
# Encrypted members give a RuntimeError, unknown compression a NotImplementedError.
DAMAGE = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


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
                        f"{path} has no array 'images'; it has {', '.join(names) or 'none'}."
                        f"{nearest('images', names)}"
                    )
                with archive.open(IMAGES) as file:
                    self._shape = _image_shape(file)
            with np.load(path, allow_pickle=False) as arrays:
                known = arrays["labels"] if "labels" in names else None
            self._labels = _labels(known, self._shape[0])
        except DAMAGE as error:
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
        except DAMAGE as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> VitscopeError:
        return VitscopeError(
            f"{self._path} is not an .npz of uint8 images and whole-numbered labels ({error}): "
            f"save it again, with numpy.savez."
        )


def _image_shape(file: IO[bytes]) -> Shape:
    """Read the header of an array of images and return its shape."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_column, dtype = read(file)
    pictures = len(shape) in {3, 4} and shape[3:] in {(), (3,)} and 0 not in shape[1:]
    if dtype != np.uint8 or by_column or not pictures:
        raise ValueError(f"images are {dtype} {shape}")
    return tuple(shape)


def _labels(known: npt.NDArray[Any] | None, count: int) -> npt.NDArray[Any]:
    if known is None:
        return np.full(count, UNKNOWN_LABEL)
    labels = known.reshape(-1)
    if labels.dtype.kind not in "iu" or len(labels) != count:
        raise ValueError(f"labels are {known.dtype} {known.shape}")
    return labels
