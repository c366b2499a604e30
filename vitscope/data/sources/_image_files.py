"""A source of image files, each with the number of its class."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitscope.data.source import Sample
from vitscope.files.images import decode_image, size_of

# How the name of a file ends that is the mask of the image of the same name.
MASK = ".mask.png"


def mask_of(file: Path) -> Path:
    """Return where the mask of an image lies, if it has one."""
    return file.with_suffix(MASK)


class ImageFiles:
    """Image files with the numbers of their classes, some with a mask of their subject."""

    extra = ()

    def __init__(
        self,
        files: list[tuple[Path, int]],
        classes: list[str],
        provenance: dict[str, str],
        empty: Sequence[str] = (),
    ) -> None:
        self._files, self.classes, self.provenance = files, classes, provenance
        # Sub-folders that hold no image.
        self.empty = empty

    def __len__(self) -> int:
        return len(self._files)

    def labels(self, indices: npt.NDArray[np.int64]) -> list[int]:
        """Return the numbers of the classes of images, which are not opened."""
        return [self._files[index][1] for index in indices]

    @property
    def has_masks(self) -> bool:
        """Whether a mask lies beside any of the images."""
        return any(mask_of(file).is_file() for file, _ in self._files)

    def one_size(self) -> tuple[int, int] | None:
        """Return the height and width of the images, if all have the same; none is decoded."""
        sizes = (size_of(file) for file, _ in self._files)
        first = next(sizes)
        return first if all(each == first for each in sizes) else None

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield images with the number of their class."""
        for index in indices:
            file, label = self._files[index]
            mask = mask_of(file)
            subject = decode_image(mask, str(mask)) if mask.is_file() else None
            yield Sample(decode_image(file, str(file)), label, mask=subject)
