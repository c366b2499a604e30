"""The frames of a video as they come, one in memory at a time."""

from collections.abc import Generator
from fractions import Fraction
from typing import NamedTuple

from PIL import Image

from vitscope.errors import VitscopeError

# How long a frame is shown where nothing says it.
SECONDS = Fraction(1, 10)


class Frame(NamedTuple):
    """A frame, and how long it is shown."""

    picture: Image.Image
    seconds: Fraction


class Video(NamedTuple):
    """The frames of a video; `rate` is how many there are in a second, None if that changes.

    Closing `frames` ends whatever reads them.
    """

    rate: Fraction | None
    frames: Generator[Frame]


class BrokenOffError(VitscopeError):
    """A video ends before its end; the text says where, as the first half of a sentence."""


class Ticks:
    """Durations as whole numbers of ticks: what is rounded of one frame is made up by the next."""

    def __init__(self, per_second: Fraction | int, least: int, most: int) -> None:
        self._per_second, self._least, self._most = per_second, least, most
        self._end = Fraction(0)
        self._given = 0

    def of(self, seconds: Fraction) -> int:
        """Return how many ticks the next frame is shown."""
        self._end += seconds * self._per_second
        ticks = min(max(round(self._end) - self._given, self._least), self._most)
        self._given += ticks
        return ticks
