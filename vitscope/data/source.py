"""What every source of images offers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.errors import VitscopeError, nearest


class Sample(NamedTuple):
    """An image, the number of its class, and further numbers that the source knows of it.

    `mask` is a picture, white where the subject of the image is, if there is one.
    """

    image: Image.Image
    label: int
    extra: tuple[int, ...] = ()
    mask: Image.Image | None = None


class Glance(NamedTuple):
    """What the names of files alone tell of a split: its classes, and how many images there are.

    `empty` are the folders that would be classes and hold no image.
    """

    classes: list[str]
    images: int
    empty: Sequence[str] = ()


class Source(Protocol):
    """One split of a data set, read image by image.

    `classes` is empty if labels are unknown; `extra` names the further numbers of each sample;
    `provenance` says where the images come from, for the metadata of all that is made of them.
    """

    @property
    def classes(self) -> list[str]: ...

    @property
    def extra(self) -> tuple[str, ...]: ...

    @property
    def provenance(self) -> dict[str, str]: ...

    def __len__(self) -> int: ...

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield the images of ascending indices, one at a time."""
        ...


def no_such_split(source: str, split: str, allowed: Iterable[str]) -> VitscopeError:
    """Return the error that a source does not have a split."""
    allowed = list(allowed)
    return VitscopeError(
        f"{source} has no split '{split}': name the splits of the data set among "
        f"{', '.join(allowed)}.{nearest(split, allowed)}"
    )
