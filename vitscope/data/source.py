"""The interface of sources of images, and base classes for image files and generated images."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.errors import VitscopeError, nearest
from vitscope.files.images import decode_image, read_image_size

# The suffix of a mask's file: the mask of `cat.jpg` is `cat.mask.png`.
MASK = ".mask.png"


class Sample(NamedTuple):
    """An image, its label, extra integers, and a `mask` that is white on the image's subject.

    `name` is the path of the image's file, if it has one.
    """

    image: Image.Image
    label: int
    extra: tuple[int, ...] = ()
    mask: Image.Image | None = None
    name: str = ""


class Glance(NamedTuple):
    """What file names tell about a split; `empty` names folders without images."""

    classes: list[str]
    images: int
    empty: Sequence[str] = ()


class Source(ABC):
    """One split of a data set, read image by image.

    `classes` is empty if labels are unknown. `provenance` says where the images come from, and is
    copied to the metadata of every result. `extra` names the extra integers of each sample.
    """

    classes: list[str]
    provenance: dict[str, str]
    extra: tuple[str, ...] = ()
    # The names of sub-folders without images.
    empty: Sequence[str] = ()
    # The network outputs of each class, if a class has several.
    outputs: list[list[int]] | None = None

    @property
    def has_masks(self) -> bool:
        return False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield the samples at ascending `indices`, one at a time."""


def no_such_split(source: str, split: str, allowed: Collection[str]) -> VitscopeError:
    return VitscopeError(
        f"{source} has no split '{split}': name the splits of the data set among "
        f"{', '.join(allowed)}.{nearest(split, allowed)}"
    )


def mask_path(file: Path) -> Path:
    return file.with_suffix(MASK)


class ImageFiles(Source):
    def __init__(
        self,
        files: list[tuple[Path, int]],
        classes: list[str],
        provenance: dict[str, str],
        empty: Sequence[str] = (),
    ) -> None:
        self._files, self.classes, self.provenance = files, classes, provenance
        self.empty = empty

    def __len__(self) -> int:
        return len(self._files)

    def labels(self, indices: npt.NDArray[np.int64]) -> list[int]:
        return [self._files[index][1] for index in indices]

    @property
    def has_masks(self) -> bool:
        return any(mask_path(file).is_file() for file, _ in self._files)

    def one_size(self) -> tuple[int, int] | None:
        """Return the height and width of all images, or None if they differ; decode no image."""
        sizes = (read_image_size(file) for file, _ in self._files)
        first = next(sizes)
        return first if all(each == first for each in sizes) else None

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        for index in indices:
            file, label = self._files[index]
            mask = mask_path(file)
            subject = decode_image(mask, str(mask)) if mask.is_file() else None
            yield Sample(decode_image(file, str(file)), label, mask=subject, name=str(file))


class Generated(Source):
    """A split of a generated data set; seed, split and index determine each image."""

    name: ClassVar[str]
    sizes: ClassVar[Mapping[str, int]]
    class_names: ClassVar[Sequence[str]]

    def __init__(self, source: Mapping[str, Any], split: str, file: Path | None = None) -> None:
        if split not in self.sizes:
            raise no_such_split(self.name, split, self.sizes)
        self._split, self._seed = split, source.get("seed", 0)
        self.classes = list(self.class_names)
        self.provenance = {"source": self.name, "source_seed": str(self._seed)}

    def __len__(self) -> int:
        return self.sizes[self._split]
