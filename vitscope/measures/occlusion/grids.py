"""Grids of patches that images can be cut into: their arithmetic, which needs no numpy."""

from collections.abc import Sequence
from fractions import Fraction
from math import gcd

from vitscope.errors import VitscopeError
from vitscope.image_size import ImageSize, height_and_width

# Of the patches of 16 pixels that most vision transformers cut images of 224 pixels into.
FINEST = 14


def grid_of(grid: int | None, size: ImageSize) -> int:
    """Return into how many patches a side is cut, by default into as many as fit, up to 14."""
    return grids_of(None if grid is None else [grid], size)[-1]


def grids_of(grids: Sequence[int] | None, size: ImageSize) -> Sequence[int]:
    """Return the grids that images are cut into, by default all that fit, up to 14."""
    height, width = height_and_width(size)
    side = gcd(height, width)
    fitting = [grid for grid in range(2, side + 1) if side % grid == 0]
    chosen = [grid for grid in fitting if grid <= FINEST] if grids is None else grids
    for grid in chosen or [FINEST]:
        if grid not in fitting:
            allowed = ", ".join(map(str, fitting)) or "none: give them another image_size"
            raise VitscopeError(
                f"analysis.occlusion: images of {height} x {width} pixels cannot be cut into a "
                f"grid of {grid} x {grid} equal patches; grids that fit are {allowed}."
            )
    return chosen


def count_dropped(share: float, grid: int) -> int:
    """Return how many patches a share is, rounded down; of the decimal that it is written as."""
    return int(Fraction(str(share)) * grid**2)
