"""A split whose images are not stored: each is read from its file whenever it is wanted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.building import MODES, UNSTORED, preprocess
from vitscope.data.opening import open_source
from vitscope.data.split import Rows, Split
from vitscope.errors import VitscopeError
from vitscope.files.pictures import as_pixels
from vitscope.files.tensors import TensorFile
from vitscope.image_size import height_and_width


class UnstoredSplit(Split):
    """The images of a folder that is as it was when the file of the split was written."""

    HOLDS = frozenset({"labels", "index"})
    has_pixels = True

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self._dataset: dict[str, Any] = json.loads(self.metadata[UNSTORED])
        self._index = self.column("index")
        self._source = open_source(self._dataset["source"], self._dataset["split"])
        if not self._source.provenance.items() <= self.metadata.items():
            raise VitscopeError(
                f"{self._dataset['source']['path']} holds other files than when {path} was "
                f"written: delete that file and run again."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an image as networks take it: (C, H, W)."""
        return self._dataset["channels"], *height_and_width(self._dataset["image_size"])

    def images(self, rows: Rows) -> npt.NDArray[Any]:
        """Return images, (N, C, H, W), resized and cut as the data set says."""
        where = str(self._file.path)
        return np.stack([preprocess(each, self._dataset, where) for each in self._whole(rows)])

    def pictures(self, rows: Rows) -> list[npt.NDArray[Any]]:
        """Return whole images, each (H, W, C)."""
        mode = MODES[self._dataset["channels"]]
        return [as_pixels(each.convert(mode)) for each in self._whole(rows)]

    def _whole(self, rows: Rows) -> Iterator[Image.Image]:
        return (sample.image for sample in self._source.samples(self._index[rows]))


def open_split_file(path: Path | str) -> Split:
    """Open the file of a split, whether it holds the images or says where they are."""
    return UnstoredSplit(path) if UNSTORED in TensorFile(path).metadata else Split(path)
