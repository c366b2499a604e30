"""Where a loss landscape is measured: on a grid, and for claims at some of its points."""

from math import hypot

Point = tuple[float, float]

# The distance from the trained weights at which the paper's landscapes are compared.
RADIUS = 0.5
# Points that lie on a border count, however their distance is rounded.
ROUNDING = 1 + 1e-6


def coordinates(points: int, radius: float) -> list[float]:
    """Return the positions along an axis; `points` is odd, so that the middle one is exactly 0."""
    half = (points - 1) // 2
    return [radius * step / half for step in range(-half, half + 1)]


def grid(points: int, radius: float, rows: range | None = None) -> list[Point]:
    """Return some rows of the grid, or all; the first coordinate varies fastest."""
    steps = coordinates(points, radius)
    return [(x, steps[row]) for row in (rows or range(points)) for x in steps]


def claimed(points: int, radius: float, rows: range | None = None) -> list[Point]:
    """Return the points of the same rows that claims are about.

    These are the trained weights and their neighbours, and what is about `RADIUS` away.
    """
    step = 2 * radius / (points - 1)
    return [
        point
        for point in grid(points, radius, rows)
        if hypot(*point) <= step * ROUNDING or about_radius(hypot(*point), step)
    ]


def about_radius(distance: float, step: float) -> bool:
    """Tell whether a distance is that of the ring of points that are compared."""
    return abs(distance - RADIUS) <= step / 2 * ROUNDING
