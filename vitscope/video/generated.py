"""Videos that are made here, for a demonstration that needs no file."""

from collections.abc import Generator
from fractions import Fraction

import numpy as np
from PIL import Image

from vitscope.data.sources import shapes32
from vitscope.video.frames import Frame, Video

# Frames of a way around, at ten in a second.
FRAMES, RATE = 12, Fraction(10)
# The image whose shape moves, of the split that no network was trained on.
_SPLIT, _IMAGE = "test", 0
# How far the shape goes across and down, as shares of the room that it has.
_REACH = np.array([1.0, 0.7])


def _move_shape() -> Generator[Frame]:
    """Move the shape of an image of shapes32 around, in front of its background."""
    angles = 2 * np.pi * np.arange(FRAMES) / FRAMES
    places = _REACH * np.stack([-np.cos(angles), -np.sin(angles)], axis=1)
    drawn = shapes32.draw(_SPLIT, np.full(FRAMES, _IMAGE), 0, places)
    for pixels in drawn.pixels:
        yield Frame(Image.fromarray(pixels), 1 / RATE)


def generate(name: str) -> Video:
    """Return a video that is made here, by its name, which the settings have checked."""
    return Video(RATE, {"shapes32": _move_shape}[name]())
