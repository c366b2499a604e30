"""Image files that may be damaged or hostile, decoded safely."""

import io
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.errors import VitscopeError

# Formats of photographs alone: Pillow would run Ghostscript on a PostScript file of any name.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# The number of pixels from which Pillow takes an image for a bomb.
LARGEST_IMAGE = 2 * (Image.MAX_IMAGE_PIXELS or 0)


def as_picture(pixels: npt.NDArray[np.uint8]) -> Image.Image:
    """Return pixels of bytes, (H, W, 3), or (H, W, 1) of a grey image, as a picture."""
    grey = pixels.shape[2] == 1
    return Image.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))


def as_pixels(picture: Image.Image) -> npt.NDArray[np.uint8]:
    """Return the pixels of a picture, (H, W, 3), or (H, W, 1) if it is grey."""
    return np.atleast_3d(np.asarray(picture))


def decoded(file: Path | io.BytesIO, name: str) -> Image.Image:
    """Decode an image in RGB; `name` is what messages call it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                return image.convert("RGB")
    except Exception as error:
        # Damaged bytes make the decoders fail in every way there is.
        raise VitscopeError(f"{name} is not a readable image: repair or remove it.") from error
