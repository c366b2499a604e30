"""A source of image files, each with the number of its class."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitscope.data.source import Sample
from vitscope.files.images import decode_image


class ImageFiles:
    """Image files with the numbers of their classes."""

    extra = ()

    def __init__(
        self, files: list[tuple[Path, int]], classes: list[str], provenance: dict[str, str]
    ) -> None:
        self._files, self.classes, self.provenance = files, classes, provenance

    def __len__(self) -> int:
        return len(self._files)

    def labels(self, indices: npt.NDArray[np.int64]) -> list[int]:
        """Return the numbers of the classes of images, which are not opened."""
        return [self._files[index][1] for index in indices]

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield images with the number of their class."""
        for index in indices:
            file, label = self._files[index]
            yield Sample(decode_image(file, str(file)), label)
