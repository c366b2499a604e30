"""What all corruptions share: the types, draws for each image, and maps that act along an axis."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

# Float32 from 0 to 1, (n, channels, height, width): three channels, or one of grey images.
Images = npt.NDArray[Any]
Maps = npt.NDArray[Any]
# One generator for each image.
Draws = Iterable[np.random.Generator]


def draw_each(draw: Callable[[np.random.Generator], Maps], draws: Draws) -> Maps:
    """Draw for each image with its own generator; return the draws, one above the other."""
    return np.stack([draw(generator) for generator in draws])


def map_both_axes(matrix_of: Callable[[int], Maps], images: Maps) -> Maps:
    """Apply a linear map of lines to all columns and to all rows of images.

    `matrix_of` returns its matrix for lines of a length. Most of it is zero; and unlike a dense
    product, a sparse one does not round by how many images there are or how many threads.
    """
    for axis in (-2, -1):
        lines = np.moveaxis(images, axis, 0)
        matrix = csr_array(matrix_of(len(lines)).astype(images.dtype))
        mapped = matrix @ lines.reshape(len(lines), -1)
        images = np.moveaxis(mapped.reshape(lines.shape), 0, axis)
    return np.ascontiguousarray(images)
