"""The images that figures of attention show, as pictures that a table holds."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from vitscope.data.image_rows import shard_rows
from vitscope.files.pictures import as_picture
from vitscope.measures.given import OnModel


def rows_shown(given: OnModel, shown: int, images: int, seed: int | None) -> list[int]:
    """Return the first rows of a split of those that are measured."""
    return shard_rows(len(given.images), 0, images, seed, shard_size=images)[:shown]


def pictures(given: OnModel, rows: list[int]) -> list[bytes]:
    """Return images as files of the format PNG; what has no pixels is scaled to its own range."""
    return [_png(_pixels(image)) for image in given.images.images(rows)]


def _pixels(image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if image.dtype != np.uint8:
        low, high = float(image.min()), float(image.max())
        image = np.round(255 * (image - low) / max(high - low, 1e-12)).astype(np.uint8)
    pixels: npt.NDArray[np.uint8] = image.transpose(1, 2, 0)
    return pixels


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    written = io.BytesIO()
    as_picture(pixels).save(written, "PNG")
    return written.getvalue()
