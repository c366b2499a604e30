"""Attention over a video: what a network looks at in each frame, side by side with the frame.

Panels stand in rows, with a title above, and the scale of the colours below. Pixels are put
together by Pillow; a figure of matplotlib for each frame would take longer than the network does.
What is the same in all frames is drawn once.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain, islice
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw, ImageFont
from PIL.Image import Resampling
from torch import Tensor, nn

from vitscope.data.building import preprocess
from vitscope.data.split import normalize
from vitscope.drawing.looks import GRAY, MAP_COLORS, OVERLAY_ALPHA
from vitscope.drawing.overlays import smooth
from vitscope.errors import VitscopeError
from vitscope.files.images import as_picture
from vitscope.files.whole import atomic_path
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.attending import attention_in
from vitscope.measures.attention.maps import Maps, Rollout, attention_named, maps_of
from vitscope.networks.attention.reading import Attention
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.progress import Clock, Say
from vitscope.video.frames import BrokenOffError, Frame, Video
from vitscope.video.writing import check_room, describe, format_of, write_frames

Map = npt.NDArray[np.float64]

# Enlarge panels by a whole factor until they are at least this many pixels wide.
_LEAST_SIDE = 160
# Text and the space between panels, as shares of a panel's shorter side; the bar, of its width.
_TEXT, _GAP, _BAR_WIDTH = 0.07, 0.04, 0.7
# So many maps stand side by side at most.
_MOST_BESIDE = 5
_SMALLEST_TEXT = 12
_PAPER, _INK = "white", "black"


class Scale(NamedTuple):
    """The texts at both ends of a colour bar, and its label, which says what is shown."""

    low: str
    high: str
    label: str


class Sheet:
    """The layout of the panels in all frames, with the text around them."""

    def __init__(self, size: ImageSize, panels: Sequence[str], title: str, scale: Scale) -> None:
        """Lay out panels with these titles, for frames of this size."""
        height, width = height_and_width(size)
        times = ceil(_LEAST_SIDE / width)
        # Width and height, in the order that pictures use.
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
        # MP4 needs even sides.
        self.size = (width + width % 2, height + height % 2)
        self._page = Image.new("RGB", self.size, _PAPER)
        self._draw = ImageDraw.Draw(self._page)
        self._write((self._gap, self._gap), title)
        for number, text in enumerate(panels):
            left, top = self.corner(number)
            self._write((left, top - self._line), text, GRAY)
        self._draw_scale(scale, height - self._gap - self._line)

    def corner(self, number: int) -> tuple[int, int]:
        """Return a panel's corner: its distance from the left and from the top."""
        row, column = divmod(number, self._columns)
        left = self._gap + column * (self.panel[0] + self._gap)
        top = 2 * (self._gap + self._line) + row * (self._line + self.panel[1] + self._gap)
        return left, top

    def _write(self, place: tuple[int, int], text: str, color: str = _INK) -> int:
        """Write a text and return where it ends."""
        self._draw.text(place, text, fill=color, font=self._font)
        return place[0] + ceil(self._font.getlength(text))

    def _draw_scale(self, scale: Scale, top: int) -> None:
        height, width = round(0.7 * self._line), round(_BAR_WIDTH * self.panel[0])
        left = self._write((self._gap, top), scale.low) + self._gap
        bar = map_colors(np.broadcast_to(np.linspace(0, 1, width), (height, width)))
        self._page.paste(bar, (left, top + (self._line - height) // 2))
        right = self._write((left + width + self._gap, top), scale.high) + 2 * self._gap
        self._write((right, top), scale.label, GRAY)

    def enlarge(self, picture: Image.Image) -> Image.Image:
        """Enlarge a picture to a panel in colour, with its pixels as squares."""
        return picture.convert("RGB").resize(self.panel, Resampling.NEAREST)

    def shade(self, values: Map) -> Image.Image:
        """Return a map of values from 0 to 1 in colours, as large as a panel."""
        return map_colors(smooth(values, self.panel))

    def fill(self, panels: Sequence[Image.Image]) -> Image.Image:
        """Return a frame of the video: the sheet with these panels."""
        page = self._page.copy()
        for number, panel in enumerate(panels):
            page.paste(panel, self.corner(number))
        return page


def map_colors(values: Map) -> Image.Image:
    """Colour values from 0 to 1 as maps; larger values get the last colour."""
    return Image.fromarray(mpl.colormaps[MAP_COLORS](values, bytes=True)[..., :3])


def draw_cross(picture: Image.Image, place: tuple[float, float]) -> None:
    """Draw a cross on a picture at a place, as shares of its height and width."""
    draw = ImageDraw.Draw(picture)
    x, y = place[1] * picture.width, place[0] * picture.height
    arm = max(4, picture.width // 32)
    for color, thick in ((_INK, 3), (_PAPER, 1)):
        for down in (arm, -arm):
            draw.line((x - arm, y - down, x + arm, y + down), fill=color, width=thick)


@dataclass(frozen=True)
class Subject:
    """The network that looks, and how it takes images.

    The network's `settings` include the mean and deviation of its pixels; `taking` says how to
    bring pictures to its size, as a data set does.
    """

    model: str
    label: str
    network: nn.Module
    cut_points: Sequence[CutPoint]
    settings: Mapping[str, Any]
    taking: Mapping[str, Any]
    device: torch.device

    def attention(self) -> tuple[list[Attention], list[str]]:
        """Return the network's attention, and sentences on attention that cannot be read."""
        where = f"models.{self.model}"
        return attention_in(self.network, self.settings, self.cut_points, where)


class Seen(NamedTuple):
    """What a view sees in a frame: whose attention it is, and the maps.

    `query` is the query's place, if it has one, as shares of the image's height and width.
    """

    of: str
    maps: list[Map]
    query: tuple[float, float] | None = None


class HeadsView:
    """A map for each of all or some heads of one attention; the first frame sets the brightness."""

    lies_over = False

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        attentions, self.warnings = subject.attention()
        attention = attentions[attention_named(attentions, settings["block"], subject.model, where)]
        self._network, size = subject.network, subject.settings["image_size"]
        self._size = height_and_width(size)
        self._heads = settings["heads"] or [*range(attention.heads)]
        self._brightest = settings["brightest"]
        self._maps = Maps(subject.model, size, attention, where)
        self._maps.show_heads(settings["query"], self._heads)
        self.title = attention.name
        self.panels = [f"head {head}" for head in self._heads]

    def see(self, image: Tensor) -> Seen:
        """Look at a frame in the form that the network takes."""
        maps, _ = maps_of(self._network, self._maps, image)
        found = {each["head"]: each for each in maps}
        shown = [found[head] for head in self._heads]
        grids = [np.reshape(each["weights"], (each["height"], each["width"])) for each in shown]
        row, column = shown[0]["query_row"], shown[0]["query_column"]
        query = None if row is None else (row / self._size[0], column / self._size[1])
        return Seen(shown[0]["of"], grids, query)

    def scale(self, first: Seen) -> tuple[Scale, float]:
        """Return the scale of all frames, and the value of its brightest colour."""
        brightest = self._brightest or 100 * max(float(each.max()) for each in first.maps) or 100.0
        return Scale("0", f"{brightest:.3g} or more", "attention (%)"), brightest / 100


class RolloutView:
    """Attention rollout, divided by its largest value, alone and over the picture."""

    panels = ("rollout", "over the video")
    lies_over = True

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        attentions, self.warnings = subject.attention()
        self._rollout = Rollout(attentions)
        self._network, self._fusion = subject.network, settings["fusion"]
        self.title = f"rollout, {self._fusion} of heads"

    def see(self, image: Tensor) -> Seen:
        """Look at a frame in the form that the network takes."""
        self._rollout.run(self._network, image, self._fusion)
        of, values = self._rollout.result()
        return Seen(of, [values.double().reshape(self._rollout.grid).numpy()])

    def scale(self, first: Seen) -> tuple[Scale, float]:
        """Return the scale of all frames, and the value of its brightest colour."""
        return Scale("0", "1", "rollout over its largest"), 1.0


def show(
    subject: Subject,
    video: Video,
    path: Path,
    settings: Mapping[str, Any],
    facts: Mapping[str, str],
    *,
    where: str,
    say: Say = print,
) -> list[str]:
    """Write a video of what a network looks at; return sentences on attention it cannot show.

    If the video breaks off, a file whose name says so keeps the part until then, and an error
    names that file. `where` is the section of settings that says what to show.
    """
    kind, incomplete = format_of(path), path.with_name(f"{path.stem}.incomplete{path.suffix}")
    with suppress(OSError):
        # Remove an earlier run's leftover. If that fails, so does writing.
        incomplete.unlink()
    with closing(video.frames) as frames, atomic_path(path) as partial:
        painter = Painter(subject, settings, where)
        painted = painter.paint_all(islice(frames, settings["frames"]), kind, say)
        first = next(painted, None)
        if first is None:
            reason = painter.broken or "The video has no frames"
            raise VitscopeError(f"{reason}: give another video.")
        warned = {"Warning": " ".join(painter.warnings)} if painter.warnings else {}
        about = describe(path.stem, {"Shown": painter.title, **facts, **warned})
        painted = chain([first], painted)
        write_frames(partial, kind, painted, about, video.rate, lossless=settings["lossless"])
        if painter.broken:
            partial.replace(incomplete)
            raise VitscopeError(
                f"{painter.broken}: the {painter.count} frames before that are in {incomplete}; "
                f"repair the video, or ask for no more `frames` than these."
            )
    return painter.warnings


class Painter:
    """Paints frames of the new video, one by one; the first decides the scale of all.

    `count` is the number of frames, and `broken` says why the video broke off, if it did.
    """

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        subject.network.eval().to(subject.device)
        self._subject, self._where = subject, where
        kind = HeadsView if settings["shows"] == "heads" else RolloutView
        self._view: HeadsView | RolloutView = kind(subject, settings, where)
        self.warnings = self._view.warnings
        self.title, self.count = "", 0
        self.broken: BrokenOffError | None = None

    def paint_all(self, frames: Iterator[Frame], kind: str, say: Say) -> Iterator[Frame]:
        """Paint a video until it ends, breaks off, or runs out of room."""
        clock = Clock()
        try:
            for frame in frames:
                page = self.paint(frame.picture)
                check_room(kind, self.count, page)
                yield Frame(page, frame.seconds)
                self.count += 1
                seconds = clock.seconds_if_due()
                if seconds is not None:
                    say(f"{self.count} frames, {self.count / seconds:.3g} per s")
        except BrokenOffError as error:
            self.broken = error

    def paint(self, picture: Image.Image) -> Image.Image:
        """Return a frame: the picture as the network takes it, and what it looks at there."""
        subject = self._subject
        taken = preprocess(picture, subject.taking, self._where)
        mean, std = subject.settings["mean"], subject.settings["std"]
        seen = self._view.see(normalize(taken[None], mean, std).to(subject.device))
        if not self.title:
            self.title = f"{subject.label}: {self._view.title} ({seen.of})"
            scale, self._brightest = self._view.scale(seen)
            panels = ["video", *self._view.panels]
            self._sheet = Sheet(subject.settings["image_size"], panels, self.title, scale)
        shown = self._sheet.enlarge(as_picture(taken.transpose(1, 2, 0)))
        maps = [self._sheet.shade(each / self._brightest) for each in seen.maps]
        if self._view.lies_over:
            maps += [Image.blend(shown, maps[0], OVERLAY_ALPHA)]
        if seen.query is not None:
            draw_cross(shown, seen.query)
        return self._sheet.fill([shown, *maps])
