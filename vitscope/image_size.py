"""The size of images, as settings say it: the side of squares, or height and width."""

from collections.abc import Sequence

ImageSize = int | Sequence[int]


def height_and_width(size: ImageSize) -> tuple[int, int]:
    """Return the height and the width of images."""
    height, width = (size, size) if isinstance(size, int) else size
    return height, width


def in_short(height: int, width: int) -> int | list[int]:
    """Return a height and a width as settings say them."""
    return height if height == width else [height, width]
