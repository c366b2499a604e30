"""Image files that may be damaged or hostile, decoded safely."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from vitscope.errors import VitscopeError

# Formats of photographs alone: Pillow would run Ghostscript on a PostScript file of any name.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# The number of pixels from which Pillow takes an image for a bomb.
LARGEST_IMAGE = 2 * (Image.MAX_IMAGE_PIXELS or 0)


def decode_image(file: Path | io.BytesIO, name: str) -> Image.Image:
    """Decode an image in RGB; `name` is what messages call it."""
    with _opened(file, name) as image:
        return image.convert("RGB")


def size_of(file: Path) -> tuple[int, int]:
    """Return the height and the width of an image, which is not decoded."""
    with _opened(file, str(file)) as image:
        return image.height, image.width


@contextmanager
def _opened(file: Path | io.BytesIO, name: str) -> Iterator[Image.Image]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                yield image
    except Exception as error:
        # Damaged bytes make the decoders fail in every way there is.
        raise VitscopeError(f"{name} is not a readable image: repair or remove it.") from error
