"""Open a video: a folder of frames, an animated picture, or what ffmpeg reads."""

import re
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from PIL import Image

from vitscope.data.sources.folder import SUFFIXES
from vitscope.errors import VitscopeError
from vitscope.files.images import FORMATS, decoded
from vitscope.video import ffmpeg
from vitscope.video.animations import animation
from vitscope.video.frames import SECONDS, BrokenOffError, Frame, Video
from vitscope.video.generated import generated


def open_source(path: Path | None, source: Mapping[str, str], per_second: float | None) -> Video:
    """Return the frames that a study asks for: of a folder or a file, or generated ones.

    They are shown for as long as they say, or `per_second` of them in a second.
    """
    video = generated(source["generated"]) if path is None else open_video(path)
    if per_second is None:
        return video
    rate = Fraction(per_second).limit_denominator(1001)
    return Video(rate, _at(rate, video.frames))


def open_video(path: Path) -> Video:
    """Return the frames of a folder or a file."""
    try:
        if path.is_dir():
            return Video(1 / SECONDS, _of_folder(path))
        frames = animation(path)
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


def natural(path: Path) -> list[tuple[int, int, str]]:
    """Return a key by which frame2 comes before frame10."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def _of_folder(folder: Path) -> Generator[Frame]:
    files = [file for file in folder.iterdir() if _is_frame(file)]
    if not files:
        raise VitscopeError(
            f"{folder} holds no pictures ({', '.join(sorted(SUFFIXES))}): give a folder of frames."
        )
    files.sort(key=natural)
    _refuse_other_sizes(files)
    for file in files:
        try:
            picture = decoded(file, str(file))
        except VitscopeError as error:
            raise BrokenOffError(f"{file} is not a readable image") from error
        yield Frame(picture, SECONDS)


def _is_frame(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()


def _refuse_other_sizes(files: list[Path]) -> None:
    """Refuse frames of several sizes before any is shown; what cannot be read is met later."""
    first: tuple[int, int] | None = None
    for file, size in _sizes(files):
        first = first or size
        if size != first:
            raise ffmpeg.other_size(str(file), size, first)


def _sizes(files: list[Path]) -> Iterator[tuple[Path, tuple[int, int]]]:
    for file in files:
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            # The head of a file tells it.
            with Image.open(file, formats=FORMATS) as image:
                size = image.size
            yield file, size
