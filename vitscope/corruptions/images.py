"""What all corruptions share: the types, draws for each image, and maps that act along an axis."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

# Float32 from 0 to 1, (n, 3, height, width).
Images = npt.NDArray[Any]
Maps = npt.NDArray[Any]
# One generator for each image.
Draws = Iterable[np.random.Generator]


def drawn(draw: Callable[[np.random.Generator], Maps], draws: Draws) -> Maps:
    """Return what is drawn for each image, one above the other."""
    return np.stack([draw(generator) for generator in draws])


def along_both_axes(matrix_of: Callable[[int], Maps], images: Maps) -> Maps:
    """Apply a linear map of lines to all columns and to all rows of images.

    `matrix_of` returns its matrix for lines of a length. Each image is a product of its own, so
    that rounding does not depend on how many there are.
    """
    height, width = images.shape[-2:]
    rows, columns = (matrix_of(n).astype(images.dtype) for n in (height, width))
    result: Maps = np.matmul(np.matmul(rows, images), columns.T)
    return result
