"""What every source of images offers."""

import io
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.errors import VitscopeError, nearest

UNKNOWN_LABEL = -1

# Those of photographs alone: Pillow would run Ghostscript on a PostScript file, whatever its name.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# What Pillow takes for a bomb.
LARGEST_IMAGE = 2 * (Image.MAX_IMAGE_PIXELS or 0)


class Sample(NamedTuple):
    """An image, the number of its class, and further numbers that the source knows of it."""

    image: Image.Image
    label: int
    extra: tuple[int, ...] = ()


class Source(Protocol):
    """One split of a data set, read image by image.

    `classes` is empty if labels are unknown; `extra` names the further numbers of each sample;
    `provenance` is what is to be known later of where the images come from.
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


def decoded(file: Path | io.BytesIO, where: str) -> Image.Image:
    """Decode an image in RGB; `where` tells it in a message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                return image.convert("RGB")
    except Exception as error:
        # Damaged bytes make the decoders fail in every way there is.
        raise VitscopeError(f"{where} is not a readable image: repair or remove it.") from error
