"""A frame beside its maps: panels in rows, a title above, and the scale of the colours below.

Pixels are put together by NumPy and Pillow; a figure of matplotlib for each frame would take longer
than the network does. What is the same in all frames is drawn once.
"""

from collections.abc import Sequence
from functools import cache
from math import ceil
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor, ImageDraw, ImageFont

from vitscope.drawing.looks import GRAY
from vitscope.drawing.overlays import COLORS, OVERLAY_ALPHA

Pixels = npt.NDArray[np.uint8]
Map = npt.NDArray[np.float64]

# Panels are made larger by a whole number until they have at least so many pixels.
_LEAST_SIDE = 160
_MOST_BESIDE = 5
# Of the side of a panel: text, the space between panels, and the colour bar.
_TEXT, _GAP, _BAR_WIDTH = 0.07, 0.04, 0.7
_SMALLEST_TEXT = 12
_PAPER, _INK = "white", "black"
# Colours of maps where there are few: neighbours differ by less than one sees.
_SHADES = 96


class Scale(NamedTuple):
    """What the darkest and the brightest colour stand for, and what is shown."""

    low: str
    high: str
    label: str


class Sheet:
    """Where the panels of all frames are, with what is written around them."""

    def __init__(self, size: int, panels: Sequence[str], title: str, scale: Scale) -> None:
        """Lay out panels with these titles for frames of `size` x `size` pixels."""
        self._times = ceil(_LEAST_SIDE / size)
        self.side = self._times * size
        self._gap = max(4, round(_GAP * self.side))
        self._font = _font(max(_SMALLEST_TEXT, round(_TEXT * self.side)))
        rows = ceil(len(panels) / _MOST_BESIDE)
        self._columns = ceil(len(panels) / rows)
        self._line = sum(self._font.getmetrics())
        width = self._columns * (self.side + self._gap) + self._gap
        row = self._line + self.side + self._gap
        height = self._top() + rows * row + self._line + self._gap
        # Even, as MP4 has them.
        self.size = (width + width % 2, height + height % 2)
        self._page = Image.new("RGB", self.size, _PAPER)
        self._draw = ImageDraw.Draw(self._page)
        self._write((self._gap, self._gap), self._fitting(title, width - 2 * self._gap))
        for number, text in enumerate(panels):
            left, top = self.corner(number)
            self._write((left, top - self._line), self._fitting(text, self.side), GRAY)
        self._draw_scale(scale, height - self._gap - self._line)
        self._drawn = np.asarray(self._page)

    def corner(self, number: int) -> tuple[int, int]:
        """Return where a panel begins: how far from the left, and from above."""
        row, column = divmod(number, self._columns)
        left = self._gap + column * (self.side + self._gap)
        top = self._top() + row * (self._line + self.side + self._gap) + self._line
        return left, top

    def _top(self) -> int:
        """Return where the first row begins, below the title."""
        return 2 * self._gap + self._line

    def _write(self, place: tuple[int, int], text: str, color: str = _INK) -> int:
        """Write a text; return where it ends."""
        self._draw.text(place, text, fill=color, font=self._font)
        return place[0] + ceil(self._font.getlength(text))

    def _fitting(self, text: str, width: int) -> str:
        """Return a text, cut short where it has no room."""
        shown = text
        while self._font.getlength(shown) > width and len(text) > 1:
            text = text[:-1]
            shown = f"{text.rstrip()}…"
        return shown

    def _draw_scale(self, scale: Scale, top: int) -> None:
        height = round(0.7 * self._line)
        left = self._write((self._gap, top), scale.low) + self._gap
        width = round(_BAR_WIDTH * self.side)
        bar = np.broadcast_to(np.linspace(0, 1, width), (height, width))
        self._page.paste(Image.fromarray(colored(bar)), (left, top + (self._line - height) // 2))
        right = self._write((left + width + self._gap, top), scale.high) + 2 * self._gap
        room = self.size[0] - self._gap - right
        self._write((right, top), self._fitting(scale.label, room), GRAY)

    def enlarged(self, picture: Pixels) -> Pixels:
        """Return a picture, (H, W, C), as large as a panel: its pixels as squares, in colour."""
        colors = np.broadcast_to(picture, (*picture.shape[:2], 3))
        return colors.repeat(self._times, 0).repeat(self._times, 1)

    def shaded(self, values: Map) -> Pixels:
        """Return a map of values from 0 to 1 in colours, as large as a panel."""
        return colored(smooth(values, self.side))

    def frame(self, panels: Sequence[Pixels]) -> Pixels:
        """Return a frame of the video: all that is on the sheet."""
        page = self._drawn.copy()
        for number, pixels in enumerate(panels):
            left, top = self.corner(number)
            page[top : top + self.side, left : left + self.side] = pixels
        return page


def smooth(values: Map, side: int) -> Map:
    """Return a map of side x side values, between those of its cells by their distance."""
    plane = Image.fromarray(np.asarray(values, np.float32))
    return np.asarray(plane.resize((side, side), Image.Resampling.BILINEAR), np.float64)


def colored(values: Map) -> Pixels:
    """Return values from 0 to 1 in the colours of maps; what is beyond has the last of these."""
    colors: Pixels = mpl.colormaps[COLORS](values, bytes=True)[..., :3]
    return colors


def steady_colors() -> Pixels:
    """Return the colours that all frames have: of text, and of maps, finely enough."""
    text = Image.new("RGB", (3, 1))
    for number, color in enumerate((_PAPER, _INK, GRAY)):
        text.putpixel((number, 0), ImageColor.getrgb(color))
    return np.concatenate([np.asarray(text)[0], colored(np.linspace(0, 1, _SHADES))])


def over(map_: Pixels, picture: Pixels) -> Pixels:
    """Return a map over the picture that it is of."""
    mixed: Pixels = np.rint(OVERLAY_ALPHA * map_ + (1 - OVERLAY_ALPHA) * picture).astype(np.uint8)
    return mixed


def crossed(picture: Pixels, place: tuple[float, float]) -> Pixels:
    """Return a picture with a cross at a place, as shares of its height and width."""
    page = Image.fromarray(picture)
    draw = ImageDraw.Draw(page)
    height, width = picture.shape[:2]
    y, x = place[0] * height, place[1] * width
    arm = max(4, width // 32)
    for color, thick in (("black", 3), ("white", 1)):
        for down in (arm, -arm):
            draw.line((x - arm, y - down, x + arm, y + down), fill=color, width=thick)
    return np.asarray(page)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    # The font of all figures, which matplotlib brings along.
    path = Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return ImageFont.truetype(path, size)
