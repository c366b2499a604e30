"""Decode image files that may be damaged or hostile; convert pixels to Pillow's pictures."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.errors import VitscopeError

# Formats of photographs only: Pillow would run Ghostscript on PostScript under any file name.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# The number of pixels above which Pillow takes an image for a decompression bomb.
LARGEST_IMAGE = 2 * (Image.MAX_IMAGE_PIXELS or 0)
# Pillow holds two more pictures of a WebP while it decodes one, so that half is as much memory.
LARGEST_WEBP = LARGEST_IMAGE // 2
# Pillow's modes of at most 8 bits per channel, which look the same after conversion to RGB.
OF_8_BITS = frozenset({"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"})
# Formats in which grey images of more than 8 bits have values up to 65535; older versions of Pillow
# open these images in the mode "I".
OF_16_BITS = ("PNG", "PPM")
# The TIFF tag for the number of bits of a value.
BITS = 258
# The TIFF tag that says whether 0 is black or white, and the value of the tag for black.
SHADE, BLACK_IS_ZERO = 262, 1
Pixels = npt.NDArray[np.uint8]


def decode_image(file: Path | io.BytesIO, name: str) -> Image.Image:
    """Decode an image to RGB of 8 bits; error messages call it `name`."""
    with _opened_image(file, name) as image:
        return in_rgb(image, name)


def read_image_size(file: Path) -> tuple[int, int]:
    """Return the height and width of an image without decoding it."""
    with _opened_image(file, str(file)) as image:
        return image.height, image.width


@contextmanager
def _opened_image(file: Path | io.BytesIO, name: str) -> Iterator[Image.Image]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                if image.format == "WEBP" and image.width * image.height > LARGEST_WEBP:
                    raise VitscopeError(
                        f"{name} is a WebP of {image.width * image.height} pixels, allowed: "
                        f"{LARGEST_WEBP}: make it smaller, or save it as another format."
                    )
                yield image
    except VitscopeError:
        raise
    except Exception as error:
        # Decoders may raise any exception on damaged bytes.
        raise VitscopeError(f"{name} is not a readable image: repair or remove it.") from error


def in_rgb(image: Image.Image, name: str) -> Image.Image:
    """Convert a picture to RGB of 8 bits as torchvision does; scale 16-bit grey."""
    if image.mode in OF_8_BITS:
        return image.convert("RGB")
    tags: Any = getattr(image, "tag_v2", {BITS: (16,), SHADE: BLACK_IS_ZERO})
    has_16_bits = tags.get(BITS) == (16,) and tags.get(SHADE) == BLACK_IS_ZERO
    is_grey = image.mode.startswith("I;16") or (image.mode == "I" and image.format in OF_16_BITS)
    if not (has_16_bits and is_grey):
        raise VitscopeError(
            f"{name} has pixels of the mode {image.mode}, of which nothing says what is white: "
            f"save it with 8 bits, or grey with 16."
        )
    return _grey_of_16_bits_in_8(image).convert("RGB")


def _grey_of_16_bits_in_8(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    grey = np.empty(values.shape, np.uint8)
    # Compute line by line: the numbers in between take four times the memory of the picture.
    for line, of_16_bits in zip(grey, values, strict=True):
        line[:] = (of_16_bits.astype(np.uint32) + 128) // 257
    return Image.fromarray(grey)


def as_picture(pixels: Pixels) -> Image.Image:
    """Convert pixels, (H, W, 3) or grey (H, W, 1), to a picture."""
    grey = pixels.shape[2] == 1
    return Image.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))


def as_pixels(picture: Image.Image) -> Pixels:
    """Convert a picture to pixels, (H, W, 3), or (H, W, 1) if it is grey."""
    return np.atleast_3d(np.asarray(picture))
