"""The frames of a video as they come, one in memory at a time."""

import re
import warnings
from collections.abc import Generator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from vitscope.data.sources import shapes32
from vitscope.data.sources.folder import SUFFIXES
from vitscope.errors import VitscopeError
from vitscope.files.images import FORMATS, decode_image, in_rgb
from vitscope.video import ffmpeg

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


# How files begin that may be animated pictures.
_ANIMATED = re.compile(rb"GIF8|\x89PNG\r\n\x1a\n|RIFF.{4}WEBP", re.DOTALL)


def open_source(path: Path | None, source: Mapping[str, str], per_second: float | None) -> Video:
    """Return the frames that a study asks for: of a folder or a file, or generated ones.

    They are shown for as long as they say, or `per_second` of them in a second.
    """
    video = generate(source["generated"]) if path is None else open_video(path)
    if per_second is None:
        return video
    rate = Fraction(per_second).limit_denominator(1001)
    return Video(rate, _at(rate, video.frames))


def open_video(path: Path) -> Video:
    """Return the frames of a folder or a file."""
    try:
        if path.is_dir():
            return Video(1 / SECONDS, _read_folder(path))
        frames = open_animation(path)
        return ffmpeg.read(path) if frames is None else Video(None, frames)
    except OSError as error:
        raise VitscopeError(
            f"{path} cannot be read ({error.strerror}): correct the path, or make it readable."
        ) from error


def _at(rate: Fraction, frames: Generator[Frame]) -> Generator[Frame]:
    try:
        for frame in frames:
            yield frame._replace(seconds=1 / rate)
    finally:
        frames.close()


def natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Return a key by which frame2 comes before frame10."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def _read_folder(folder: Path) -> Generator[Frame]:
    files = [file for file in folder.iterdir() if _is_frame(file)]
    if not files:
        raise VitscopeError(
            f"{folder} holds no pictures ({', '.join(sorted(SUFFIXES))}): give a folder of frames."
        )
    for file in sorted(files, key=natural_order):
        try:
            picture = decode_image(file, str(file))
        except VitscopeError as error:
            raise BrokenOffError(str(error).rpartition(": ")[0]) from error
        yield Frame(picture, SECONDS)


def _is_frame(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()


def open_animation(path: Path) -> Generator[Frame] | None:
    """Return the frames of an animated picture, or None if a file is none; a still is refused."""
    with path.open("rb") as file:
        may_be_animated = _ANIMATED.match(file.read(12))
    try:
        with Image.open(path, formats=FORMATS) as image:
            is_still = not getattr(image, "is_animated", False)
    except Exception:
        # What is damaged fails again when it is read, and what is no picture may be a video.
        return _read_animation(path) if may_be_animated else None
    if is_still:
        raise VitscopeError(
            f"{path} is a picture and no video: give a folder of frames, an animated GIF, WebP or "
            f"PNG, or a video."
        )
    return _read_animation(path)


def _read_animation(path: Path) -> Generator[Frame]:
    read = 0
    try:
        with warnings.catch_warnings(), Image.open(path, formats=FORMATS) as image:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            # What a PNG shows where animations are not known may be no frame of it.
            first = int(bool(image.info.get("default_image")))
            while _seek(image, first + read):
                picture = in_rgb(image, str(path))
                yield Frame(picture, _duration(image.info.get("duration", 0)))
                read += 1
            if not _is_whole(path, image, first + read):
                raise EOFError
    except Exception as error:
        # Damaged bytes make the decoders fail in every way there is.
        raise BrokenOffError(f"{path} breaks off in frame {read + 1}") from error


def _seek(image: Image.Image, number: int) -> bool:
    """Go to a frame if there is one."""
    try:
        image.seek(number)
    except EOFError:
        return False
    return True


def _is_whole(path: Path, image: Image.Image, frames: int) -> bool:
    """Tell whether a file with so many frames was not cut: Pillow takes what there is of it."""
    if image.format == "GIF":
        return path.read_bytes().rstrip(b"\0\r\n").endswith(b";")
    return frames == getattr(image, "n_frames", 1)


def _duration(milliseconds: float) -> Fraction:
    """Return the seconds that a frame is shown, as its file says; 0 says nothing."""
    return Fraction(milliseconds).limit_denominator(1000) / 1000 if milliseconds > 0 else SECONDS


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
