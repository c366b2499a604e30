"""The size of images as settings give it: one side for squares, or height and width."""

from collections.abc import Sequence

ImageSize = int | Sequence[int]


def height_and_width(size: ImageSize) -> tuple[int, int]:
    """Return the height and the width that a size in settings stands for."""
    height, width = (size, size) if isinstance(size, int) else size
    return height, width


def in_short(height: int, width: int) -> int | list[int]:
    """Return a size as settings give it: a single side if height and width are equal."""
    return height if height == width else [height, width]
