"""Attention over a video: what a network looks at in each frame, side by side with the frame."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from PIL import Image

from vitscope.data.building import preprocessed
from vitscope.data.split import normalized
from vitscope.errors import VitscopeError, visible
from vitscope.files.whole import atomic_path
from vitscope.progress import Clock, Say
from vitscope.video.drawing import Pixels, Sheet, crossed, steady_colors
from vitscope.video.frames import BrokenOffError, Frame, Video
from vitscope.video.views import Seen, Subject, view_of
from vitscope.video.writing import format_of, writing


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

    Of a video that breaks off, what was shown until then is in a file whose name says so, and an
    error tells it. `where` is the section of settings that says what is shown.
    """
    kind, incomplete = format_of(path), incomplete_path(path)
    with suppress(OSError):
        # Of another day. Where it may not be removed, nothing can be written either, as is told.
        incomplete.unlink()
    with closing(video.frames) as frames, atomic_path(path) as partial:
        painter = Painter(subject, settings, where)
        shown = _UntilEnd(islice(frames, settings["frames"]))
        painted = ((painter.frame(each.picture), each.seconds) for each in shown)
        first = next(painted, None)
        if first is None:
            raise VitscopeError(f"{shown.broken or 'The video has no frames'}: give another video.")
        size = (first[0].shape[1], first[0].shape[0])
        about = _about(path, painter, facts)
        counted = _Counted(say)
        options: dict[str, Any] = {"lossless": settings["lossless"], "steady": steady_colors()}
        with writing(partial, kind, size, video.rate, about, **options) as writer:
            for pixels, seconds in chain([first], painted):
                writer.add(pixels, seconds)
                counted.one()
        if shown.broken:
            partial.replace(incomplete)
            raise VitscopeError(
                f"{shown.broken}: the {counted.frames} frames before that are in {incomplete}; "
                f"repair the video, or ask for no more `frames` than these."
            )
    return painter.warnings


def incomplete_path(path: Path) -> Path:
    """Return the name of what was shown of a video that breaks off."""
    return path.with_name(f"{path.stem}.incomplete{path.suffix}")


class _UntilEnd:
    """The frames of a video to its end, or to where it breaks off; `broken` says why."""

    def __init__(self, frames: Iterator[Frame]) -> None:
        self._frames = frames
        self.broken: BrokenOffError | None = None

    def __iter__(self) -> Generator[Frame]:
        try:
            yield from self._frames
        except BrokenOffError as error:
            self.broken = error


class _Counted:
    """Counts the frames that are written, and says it now and then."""

    def __init__(self, say: Say) -> None:
        self.frames, self._say, self._clock = 0, say, Clock()

    def one(self) -> None:
        """Count a frame."""
        self.frames += 1
        seconds = self._clock.seconds_if_due()
        if seconds is not None:
            self._say(f"{self.frames} frames, {self.frames / seconds:.3g} per s")


class Painter:
    """Paints frames of the new video, one by one; the first decides the scale of all."""

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        subject.network.eval().to(subject.device)
        self._subject, self._where = subject, where
        self._view = view_of(subject, settings, where)
        self.warnings = self._view.warnings
        self.title = ""

    def frame(self, picture: Image.Image) -> Pixels:
        """Return a frame: the picture as the network takes it, and what it looks at there."""
        subject = self._subject
        taken = preprocessed(picture, subject.taking, self._where)
        mean, std = subject.settings["mean"], subject.settings["std"]
        seen = self._view.see(normalized(taken[None], mean, std).to(subject.device))
        if not self.title:
            self._lay_out(seen)
        shown = self._sheet.enlarged(taken.transpose(1, 2, 0))
        maps = [self._sheet.shaded(each / self._brightest) for each in seen.maps]
        beside = self._view.beside(maps, shown)
        marked = shown if seen.query is None else crossed(shown, seen.query)
        return self._sheet.frame([marked, *beside])

    def _lay_out(self, first: Seen) -> None:
        self.title = f"{self._subject.label}: {self._view.title} ({first.of})"
        scale, self._brightest = self._view.scale(first)
        panels = ["video", *self._view.panels]
        self._sheet = Sheet(self._subject.settings["image_size"], panels, self.title, scale)


def _about(path: Path, painter: Painter, facts: Mapping[str, str]) -> dict[str, str]:
    """Return what the file says of itself: its title, and what it was made from."""
    warned = {"Warning": " ".join(painter.warnings)} if painter.warnings else {}
    said = {"Shown": painter.title, **facts, **warned}
    description = "; ".join(f"{key}: {text}" for key, text in said.items())
    return {"title": visible(path.stem), "description": visible(description)}
