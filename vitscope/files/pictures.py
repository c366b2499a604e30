"""Pixels as pictures of Pillow, and back: in colour or grey."""

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]


def as_picture(pixels: Pixels) -> Image.Image:
    """Return pixels, (H, W, 3), or (H, W, 1) of a grey image, as a picture."""
    grey = pixels.shape[2] == 1
    return Image.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))


def as_pixels(picture: Image.Image) -> Pixels:
    """Return the pixels of a picture, (H, W, 3), or (H, W, 1) if it is grey."""
    return np.atleast_3d(np.asarray(picture))
