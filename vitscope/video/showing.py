"""Write a video with a network's maps beside each frame."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor

from vitscope.data.building import preprocess
from vitscope.data.split import normalize
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.images import as_picture
from vitscope.files.whole import atomic_path
from vitscope.progress import Clock, Say
from vitscope.video.frames import BrokenOffError, Frame, VideoFrames
from vitscope.video.sheet import Sheet, draw_cross
from vitscope.video.views import VIEWS, Subject
from vitscope.video.writing import (
    check_video_size,
    title_and_description,
    video_format,
    write_frames,
)


def show(
    subject: Subject,
    open_video: Callable[[], VideoFrames],
    path: Path,
    settings: Mapping[str, Any],
    facts: Mapping[str, str],
    *,
    where: str,
    say: Say = print,
) -> Sequence[str]:
    """Write a video with a network's maps beside each frame; return warnings about the maps."""
    kind, incomplete = video_format(path), path.with_name(f"{path.stem}.incomplete{path.suffix}")
    with suppress(OSError):
        # Remove what an earlier run left; if this fails, so does writing, which reports the reason.
        incomplete.unlink()
    painter = Painter(subject, settings, where)
    if painter.view.LOOKS_AHEAD:
        with closing(open_video().frames) as frames:
            painter.look_ahead(islice(frames, settings["frames"]))
    video = open_video()
    with closing(video.frames) as frames, atomic_path(path) as partial:
        painted = painter.paint_all(islice(frames, settings["frames"]), kind, say)
        first = next(painted, None)
        if first is None:
            reason = painter.broken or "The video has no frames"
            raise VitscopeError(f"{reason}: give another video.")
        warnings = painter.view.warnings
        warned = {"Warning": " ".join(warnings)} if warnings else {}
        about = title_and_description(path.stem, {"Shown": painter.title, **facts, **warned})
        painted = chain([first], painted)
        write_frames(partial, kind, painted, about, video.rate, lossless=settings["lossless"])
        if painter.broken:
            partial.replace(incomplete)
            raise VitscopeError(
                f"{painter.broken}: the {painter.count} frames before that are in {incomplete}; "
                f"repair the video, or ask for no more `frames` than these."
            )
    return warnings


class Painter:
    """Paints a video's frames; `broken` is the error if a video broke off after `count` frames."""

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        subject.network.eval().to(subject.device)
        self._subject, self._where = subject, where
        self.view = VIEWS[settings["shows"]](subject, settings, where)
        self.title, self.count = "", 0
        self.broken: BrokenOffError | None = None

    def look_ahead(self, frames: Iterator[Frame]) -> None:
        taken: list[Array] = []
        every = 1
        with suppress(BrokenOffError):
            for number, frame in enumerate(frames):
                if number % every == 0:
                    taken.append(self._preprocess_frame(frame.picture))
                    if len(taken) > self.view.LOOKS_AHEAD:
                        taken, every = taken[::2], 2 * every
        if taken:
            self.view.look_ahead([self._to_network_input(each) for each in taken])

    def paint_all(self, frames: Iterator[Frame], kind: str, say: Say) -> Iterator[Frame]:
        clock = Clock()
        try:
            for frame in frames:
                page = self._paint_page(frame.picture)
                check_video_size(kind, self.count, page)
                yield Frame(page, frame.seconds)
                self.count += 1
                seconds = clock.seconds_if_due()
                if seconds is not None:
                    say(f"{self.count} frames, {self.count / seconds:.3g} per s")
        except BrokenOffError as error:
            self.broken = error

    def _preprocess_frame(self, picture: Image.Image) -> Array:
        return preprocess(picture, self._subject.taking, self._where)

    def _to_network_input(self, taken: Array) -> Tensor:
        mean, std = self._subject.settings["mean"], self._subject.settings["std"]
        return normalize(taken[None], mean, std).to(self._subject.device)

    def _paint_page(self, picture: Image.Image) -> Image.Image:
        taken = self._preprocess_frame(picture)
        seen = self.view.see(self._to_network_input(taken))
        if not self.title:
            self.title = f"{self._subject.label}: {self.view.title} ({seen.of})"
            titles, size = ["video", *self.view.panels], self._subject.settings["image_size"]
            self._sheet = Sheet(size, titles, self.title, self.view.scale(seen))
        shown = self._sheet.enlarge(as_picture(taken.transpose(1, 2, 0)))
        panels = self.view.draw(self._sheet, shown, seen)
        if seen.query is not None:
            draw_cross(shown, seen.query)
        return self._sheet.fill([shown, *panels])
