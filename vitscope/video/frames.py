"""Read the frames of videos one at a time, from pictures or through ffmpeg."""

import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from PIL import Image, ImageSequence

from vitscope.data.sources import shapes32
from vitscope.data.sources.folder import SUFFIXES
from vitscope.errors import VitscopeError
from vitscope.files.images import FORMATS, decode_image, in_rgb
from vitscope.files.natural import natural_order

# How long to show a frame, in seconds, if its file does not say.
SECONDS = Fraction(1, 10)
# The first bytes of files that may be animated pictures.
_ANIMATED = re.compile(rb"GIF8|\x89PNG\r\n\x1a\n|RIFF.{4}WEBP", re.DOTALL)
# The number of frames of the generated video, in which a shape moves around once.
FRAMES = 12
# The frame rate of the generated video.
RATE = Fraction(10)
# The split and the index of the image whose shape moves; no network was trained on this split.
_SPLIT, _IMAGE = "test", 0
# How far the shape moves across and down, as shares of the available space.
_REACH = np.array([1.0, 0.7])
QUIET = ("-hide_banner", "-loglevel", "error")
# Allow only video files, and no playlists, which may name files anywhere.
_FORMATS = "mov,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,h264,hevc,yuv4mpegpipe,ivf,mxf"
_INPUT = ("-protocol_whitelist", "file,pipe", "-format_whitelist", _FORMATS)
# Make pixels square, since a video may have pixels that are wider than high.
_SQUARE = "scale=iw*sar:ih,setsar=1,format=rgb24"
_HEADER = re.compile(rb"YUV4MPEG2 W(\d+) H(\d+) F(\d+):(\d+) ")
# A frame rate above this is the time base of a file without a frame rate.
_FASTEST = Fraction(240)
# The frame rate to assume for a file without a frame rate.
_USUAL = Fraction(30)


class Frame(NamedTuple):
    picture: Image.Image
    seconds: Fraction


class VideoFrames(NamedTuple):
    """The frames of a video, and its frame rate if constant. Close `frames` to stop the decoder."""

    rate: Fraction | None
    frames: Generator[Frame]


class BrokenOffError(VitscopeError):
    """A video breaks off early; the text says where, as the first half of a sentence."""


def open_study_video_frames(path: Path | None, per_second: float | None) -> VideoFrames:
    """Open the video that a study asks for; `per_second` replaces its own frame rate."""
    # A study without a path asks for the generated video.
    video = VideoFrames(RATE, _generate_frames()) if path is None else open_video_frames(path)
    if per_second is None:
        return video
    rate = Fraction(per_second).limit_denominator(1001)
    return VideoFrames(rate, _set_rate(rate, video.frames))


def open_video_frames(path: Path) -> VideoFrames:
    try:
        if path.is_dir():
            return VideoFrames(1 / SECONDS, _read_frames_in_folder(path))
        frames = open_animation_frames(path)
        return read_film(path) if frames is None else VideoFrames(None, frames)
    except OSError as error:
        raise VitscopeError(
            f"{path} cannot be read ({error.strerror}): correct the path, or make it readable."
        ) from error


def _set_rate(rate: Fraction, frames: Generator[Frame]) -> Generator[Frame]:
    with closing(frames):
        for frame in frames:
            yield frame._replace(seconds=1 / rate)


def _read_frames_in_folder(folder: Path) -> Generator[Frame]:
    named = (file for file in folder.iterdir() if not file.name.startswith("."))
    files = [file for file in named if file.suffix.lower() in SUFFIXES and file.is_file()]
    if not files:
        raise VitscopeError(
            f"{folder} holds no pictures ({', '.join(sorted(SUFFIXES))}): give a folder of frames."
        )
    for file in sorted(files, key=lambda file: natural_order(file.name)):
        try:
            picture = decode_image(file, str(file))
        except VitscopeError as error:
            raise BrokenOffError(str(error).rpartition(": ")[0]) from error
        yield Frame(picture, SECONDS)


def open_animation_frames(path: Path) -> Generator[Frame] | None:
    """Return an animated picture's frames; None if a file is no picture; refuse a still picture."""
    with path.open("rb") as file:
        may_be_animated = _ANIMATED.match(file.read(12))
    try:
        with Image.open(path, formats=FORMATS) as image:
            is_still = not getattr(image, "is_animated", False)
    except Exception:
        # A damaged file fails again on reading, and a file that is no picture may be a video.
        return _read_animation_frames(path) if may_be_animated else None
    if is_still:
        raise VitscopeError(
            f"{path} is a picture and no video: give a folder of frames, an animated GIF, WebP or "
            f"PNG, or a video."
        )
    return _read_animation_frames(path)


def _read_animation_frames(path: Path) -> Generator[Frame]:
    read = 0
    try:
        with warnings.catch_warnings(), Image.open(path, formats=FORMATS) as image:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            # Skip a PNG's fallback image for viewers without animation, unless it is a frame too.
            first = int(bool(image.info.get("default_image")))
            for page in islice(ImageSequence.Iterator(image), first, None):
                picture = in_rgb(page, str(path))
                # Durations are in milliseconds, and 0 means unknown.
                said = Fraction(page.info.get("duration", 0)).limit_denominator(1000) / 1000
                yield Frame(picture, said if said > 0 else SECONDS)
                read += 1
            # Check for truncation, which Pillow does not report.
            if image.format == "GIF":
                is_whole = path.read_bytes().rstrip(b"\0\r\n").endswith(b";")
            else:
                is_whole = first + read == getattr(image, "n_frames", 1)
            if not is_whole:
                raise EOFError
    except Exception as error:
        # Decoders may raise any exception on damaged bytes.
        raise BrokenOffError(f"{path} breaks off in frame {read + 1}") from error


def _generate_frames() -> Generator[Frame]:
    angles = 2 * np.pi * np.arange(FRAMES) / FRAMES
    places = _REACH * np.stack([-np.cos(angles), -np.sin(angles)], axis=1)
    drawn = shapes32.draw_shapes(_SPLIT, np.full(FRAMES, _IMAGE), 0, places)
    for pixels in drawn.pixels:
        yield Frame(Image.fromarray(pixels), 1 / RATE)


def read_film(path: Path) -> VideoFrames:
    program = find_ffmpeg(
        f"{path} is no folder and no animated GIF, WebP or PNG, and videos are read by ffmpeg, "
        f"which is not on the PATH: install it, or give one of these."
    )
    name = ("-i", f"file:{path.resolve()}", "-map", "0:v:0", "-vf", _SQUARE)
    source = (program, "-nostdin", *QUIET, *_INPUT, "-err_detect", "explode", *name)
    probe = ("-frames:v", "1", "-pix_fmt", "yuv444p", "-f", "yuv4mpegpipe", "pipe:1")
    done = subprocess.run([*source, *probe], capture_output=True, check=False)
    found = _HEADER.match(done.stdout)
    if found is None:
        reason = first_message(done.stderr) or "it has no frames"
        raise VitscopeError(
            f"{path} is no video that ffmpeg reads ({reason}): give a folder of frames, an "
            f"animated GIF, WebP or PNG, or another video."
        )
    width, height, *rates = map(int, found.groups())
    said = Fraction(*rates)
    rate = said if said <= _FASTEST else _USUAL
    every = ("-r", str(rate), "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1")
    return VideoFrames(rate, _read_film_frames(path, (*source, *every), (width, height), 1 / rate))


def _read_film_frames(
    path: Path, command: tuple[str, ...], size: tuple[int, int], seconds: Fraction
) -> Generator[Frame]:
    number, of_frame = 0, 3 * size[0] * size[1]
    with run_ffmpeg(command) as (process, said):
        assert process.stdout is not None
        while len(read := process.stdout.read(of_frame)) == of_frame:
            yield Frame(Image.frombytes("RGB", size, read), seconds)
            number += 1
        code, text = process.wait(), read_messages(said)
    if code or read or text.strip():
        reason = first_message(text) or f"it ended with {code}"
        raise BrokenOffError(f"{path} breaks off behind frame {number} (ffmpeg says: {reason})")


@contextmanager
def run_ffmpeg(command: tuple[str, ...]) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    # Send messages to a file, since a pipe that nothing reads would block ffmpeg.
    with tempfile.TemporaryFile() as said:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said)
        try:
            yield process, said
        finally:
            process.kill()
            with suppress(BrokenPipeError), process:
                pass


def find_ffmpeg(without: str) -> str:
    found = shutil.which("ffmpeg")
    if found is None:
        raise VitscopeError(without)
    return found


def read_messages(said: IO[bytes]) -> bytes:
    said.seek(0)
    return said.read()


def first_message(said: bytes) -> str:
    """Return ffmpeg's first message, without the name of the component that prints it."""
    lines = said.decode(errors="replace").strip().splitlines()
    return re.sub(r"^(\[[^\]]*\] )+", "", lines[0]).rstrip(".") if lines else ""
