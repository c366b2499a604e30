"""Draw the page of each video frame with Pillow; matplotlib would be slower than the network."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.Image import Resampling

from vitscope.drawing.looks import GRAY, MAP_COLORS
from vitscope.drawing.pictures import resize_bilinear
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width

# Enlarge panels by a whole factor until they are at least this many pixels wide.
_LEAST_SIDE = 160
# The height of text, as a share of a panel's shorter side.
_TEXT = 0.07
# The space between panels, as a share of a panel's shorter side.
_GAP = 0.04
# The width of the colour bar, as a share of a panel's width.
_BAR_WIDTH = 0.7
_MOST_BESIDE = 5
_SMALLEST_TEXT = 12
_PAPER, _INK = "white", "black"


class Scale(NamedTuple):
    """The texts at both ends of a colour bar, and a label that says what it shows."""

    low: str
    high: str
    label: str


class Sheet:
    def __init__(
        self, size: ImageSize, panels: Sequence[str], title: str, scale: Scale | str
    ) -> None:
        """Lay out titled `panels` for frames of `size`, above a colour bar or text (`scale`)."""
        height, width = height_and_width(size)
        times = ceil(_LEAST_SIDE / width)
        self.panel = (times * width, times * height)
        side = min(self.panel)
        self._gap = max(4, round(_GAP * side))
        # The font of all figures, which comes with matplotlib.
        font = Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
        text_size = max(_SMALLEST_TEXT, round(_TEXT * side))
        self._font = ImageFont.truetype(font, text_size)
        self._line = sum(self._font.getmetrics())
        rows = ceil(len(panels) / _MOST_BESIDE)
        self._columns = ceil(len(panels) / rows)
        width = self._columns * (self.panel[0] + self._gap) + self._gap
        height = self.corner(rows * self._columns)[1] + self._gap
        # MP4 needs sides of even length.
        self.size = (width + width % 2, height + height % 2)
        self._page = Image.new("RGB", self.size, _PAPER)
        self._draw = ImageDraw.Draw(self._page)
        self._write_text((self._gap, self._gap), title)
        for number, text in enumerate(panels):
            left, top = self.corner(number)
            self._write_text((left, top - self._line), text, GRAY)
        self._draw_scale(scale, height - self._gap - self._line)

    def corner(self, number: int) -> tuple[int, int]:
        row, column = divmod(number, self._columns)
        left = self._gap + column * (self.panel[0] + self._gap)
        top = 2 * (self._gap + self._line) + row * (self._line + self.panel[1] + self._gap)
        return left, top

    def _write_text(self, place: tuple[int, int], text: str, color: str = _INK) -> int:
        self._draw.text(place, text, fill=color, font=self._font)
        return place[0] + ceil(self._font.getlength(text))

    def _draw_scale(self, scale: Scale | str, top: int) -> None:
        if isinstance(scale, str):
            self._write_text((self._gap, top), scale, GRAY)
            return
        height, width = round(0.7 * self._line), round(_BAR_WIDTH * self.panel[0])
        left = self._write_text((self._gap, top), scale.low) + self._gap
        bar = map_colors(np.broadcast_to(np.linspace(0, 1, width), (height, width)))
        self._page.paste(bar, (left, top + (self._line - height) // 2))
        right = self._write_text((left + width + self._gap, top), scale.high) + 2 * self._gap
        self._write_text((right, top), scale.label, GRAY)

    def enlarge(self, picture: Image.Image) -> Image.Image:
        return picture.convert("RGB").resize(self.panel, Resampling.NEAREST)

    def shade(self, values: Array) -> Image.Image:
        return map_colors(resize_bilinear(values, self.panel))

    def fill(self, panels: Sequence[Image.Image]) -> Image.Image:
        page = self._page.copy()
        for number, panel in enumerate(panels):
            page.paste(panel, self.corner(number))
        return page


def map_colors(values: Array) -> Image.Image:
    """Return a picture of values from 0 to 1 in the colours that all maps share, clipped above."""
    return Image.fromarray(mpl.colormaps[MAP_COLORS](values, bytes=True)[..., :3])


def draw_cross(picture: Image.Image, place: tuple[float, float]) -> None:
    """Draw a cross at `place`, (down, across) as shares of the picture's height and width."""
    draw = ImageDraw.Draw(picture)
    x, y = place[1] * picture.width, place[0] * picture.height
    arm = max(4, picture.width // 32)
    for color, thick in ((_INK, 3), (_PAPER, 1)):
        for down in (arm, -arm):
            draw.line((x - arm, y - down, x + arm, y + down), fill=color, width=thick)
