"""Attention over a video: what a network looks at in each frame, side by side with the frame."""

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from PIL import Image

from vitscope.data.building import preprocess
from vitscope.data.split import normalize
from vitscope.errors import VitscopeError
from vitscope.files.pictures import as_picture
from vitscope.files.whole import atomic_path
from vitscope.progress import Clock, Say
from vitscope.video.drawing import Sheet, draw_cross, lay_over
from vitscope.video.frames import BrokenOffError, Frame, Video
from vitscope.video.views import Seen, Subject, view_of
from vitscope.video.writing import check_room, describe, format_of, write_frames


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
    """Write what a network looks at in a video; return what of it cannot be read.

    If the video breaks off, what was shown until then is in a file whose name says so, and an
    error names it. `where` is the section of settings that says what is shown.
    """
    kind, incomplete = format_of(path), path.with_name(f"{path.stem}.incomplete{path.suffix}")
    with suppress(OSError):
        # A leftover of an earlier run. Where it cannot be removed, writing fails, too.
        incomplete.unlink()
    with closing(video.frames) as frames, atomic_path(path) as partial:
        painter = Painter(subject, settings, where)
        painted = painter.paint_all(islice(frames, settings["frames"]), kind, say)
        first = next(painted, None)
        if first is None:
            reason = painter.broken or "The video has no frames"
            raise VitscopeError(f"{reason}: give another video.")
        painted, about = chain([first], painted), _about(path, painter, facts)
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

    `count` is how many there are, and `broken` says why there are no more if the video breaks off.
    """

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        subject.network.eval().to(subject.device)
        self._subject, self._where = subject, where
        self._view = view_of(subject, settings, where)
        self.warnings = self._view.warnings
        self.title, self.count = "", 0
        self.broken: BrokenOffError | None = None

    def paint_all(self, frames: Iterator[Frame], kind: str, say: Say) -> Iterator[Frame]:
        """Paint a video to its end, or to where it or the room for it ends."""
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
            self._lay_out(seen)
        shown = self._sheet.enlarge(as_picture(taken.transpose(1, 2, 0)))
        panels = [self._sheet.shade(each / self._brightest) for each in seen.maps]
        if self._view.lies_over:
            panels += [lay_over(shown, panels[0])]
        if seen.query is not None:
            draw_cross(shown, seen.query)
        return self._sheet.fill([shown, *panels])

    def _lay_out(self, first: Seen) -> None:
        self.title = f"{self._subject.label}: {self._view.title} ({first.of})"
        scale, self._brightest = self._view.scale(first)
        panels = ["video", *self._view.panels]
        self._sheet = Sheet(self._subject.settings["image_size"], panels, self.title, scale)


def _about(path: Path, painter: Painter, facts: Mapping[str, str]) -> dict[str, str]:
    """Return what the file says of itself: its title, and what it was made from."""
    warned = {"Warning": " ".join(painter.warnings)} if painter.warnings else {}
    said = {"Shown": painter.title, **facts, **warned}
    return describe(path.stem, said)
