"""Videos by ffmpeg, where it is on the PATH: frames come and go through a pipe."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image

from vitscope.errors import VitscopeError
from vitscope.video.frames import BrokenOffError, Frame, Ticks, Video

_QUIET = ("-nostdin", "-hide_banner", "-loglevel", "error")
# Files of videos alone: lists of others, which may lie anywhere, are none.
_INPUT = (
    *("-protocol_whitelist", "file,pipe"),
    *(
        "-format_whitelist",
        "mov,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,h264,hevc,yuv4mpegpipe,ivf,mxf",
    ),
    *("-err_detect", "explode"),
)
# Pixels may be wider than high.
_SQUARE = "scale=iw*sar:ih,setsar=1,format=rgb24"
# Which change of size ends reading: a width that no filter takes, and says.
_SAME_SIZE = "crop=if(eq(iw\\,{0})*eq(ih\\,{1})\\,iw\\,-iw):ih:0:0"
_OTHER_SIZE = re.compile(r"width '-(\d+)' or height '(\d+)'")
_HEADER = re.compile(rb"YUV4MPEG2 W(\d+) H(\d+) F(\d+):(\d+) ")
# More frames than these in a second are the clock of a file that has no rate.
_FASTEST, _USUAL = Fraction(240), Fraction(30)
# A rate for frames that are shown for different times, each as often as it takes.
RATE_OF_CHANGING = Fraction(50)
_LONGEST_REPEAT = 1 << 20


def read(path: Path) -> Video:
    """Return the frames of a video, at the rate that it says."""
    program = _program(
        f"{path} is no folder and no animated GIF, WebP or PNG, and videos are read by ffmpeg, "
        f"which is not on the PATH: install it, or give one of these."
    )
    source = (program, *_QUIET, *_INPUT, "-i", f"file:{path.resolve()}", "-map", "0:v:0")
    probe = ("-vf", _SQUARE, "-frames:v", "1", "-pix_fmt", "yuv444p", "-f", "yuv4mpegpipe")
    done = subprocess.run([*source, *probe, "pipe:1"], capture_output=True, check=False)
    found = _HEADER.match(done.stdout)
    if found is None:
        reason = _reason(done.stderr) or "it has no frames"
        raise VitscopeError(
            f"{path} is no video that ffmpeg reads ({reason}): give a folder of frames, an "
            f"animated GIF, WebP or PNG, or another video."
        )
    width, height, *rates = map(int, found.groups())
    said = Fraction(*rates)
    rate = said if said <= _FASTEST else _USUAL
    same = _SAME_SIZE.format(width, height)
    every = ("-vf", f"{_SQUARE},{same}", "-r", str(rate), "-f", "rawvideo", "-pix_fmt", "rgb24")
    return Video(rate, _frames(path, (*source, *every, "pipe:1"), (width, height), 1 / rate))


def _frames(
    path: Path, command: tuple[str, ...], size: tuple[int, int], seconds: Fraction
) -> Generator[Frame]:
    number, width, height = 0, *size
    # Whatever ffmpeg says has room there, and holds nothing up.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
        assert process.stdout is not None
        try:
            while len(read := process.stdout.read(3 * width * height)) == 3 * width * height:
                pixels = np.frombuffer(read, np.uint8).reshape(height, width, 3)
                yield Frame(Image.fromarray(pixels), seconds)
                number += 1
            code = process.wait()
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
        text = _text(said)
    other = _OTHER_SIZE.search(text.decode(errors="replace"))
    if other:
        raise other_size(f"{path}: frame {number + 1}", (int(other[1]), int(other[2])), size)
    if code or read or text.strip():
        reason = _reason(text) or f"it ended with {code}"
        raise BrokenOffError(f"{path} breaks off behind frame {number} (ffmpeg says: {reason})")


def other_size(where: str, found: tuple[int, int], size: tuple[int, int]) -> VitscopeError:
    """Return the error that a frame is not as large as those before it."""
    one, other = (f"{width}x{height}" for width, height in (found, size))
    return VitscopeError(
        f"{where} has {one} pixels where those before have {other}: give frames of one size."
    )


class Mp4:
    """Writes frames to an MP4: H.264, with sides of even lengths."""

    def __init__(
        self,
        path: Path,
        size: tuple[int, int],
        rate: Fraction | None,
        facts: Mapping[str, str],
    ) -> None:
        program = writing_program()
        # A process that outlived its run may still write the file of this name, and no other.
        path.unlink(missing_ok=True)
        self._rate = rate or RATE_OF_CHANGING
        self._ticks = Ticks(self._rate, 1, _LONGEST_REPEAT)
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        width, height = size
        self._process = subprocess.Popen(
            (
                *(program, *_QUIET[1:], "-y"),
                *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"),
                *("-r", str(self._rate), "-i", "pipe:0"),
                "-vf",
                "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white,"
                "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p",
                *("-c:v", "libx264", "-crf", "16", "-threads", "1"),
                *("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"),
                *("-color_range", "tv", "-movflags", "+faststart"),
                *(each for key, text in facts.items() for each in ("-metadata", f"{key}={text}")),
                *("-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "mp4", str(path)),
            ),
            stdin=subprocess.PIPE,
            stderr=self._said,
        )

    def add(
        self, pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], seconds: Fraction
    ) -> None:
        """Write a frame, as often as it takes."""
        assert self._process.stdin is not None
        try:
            for _ in range(self._ticks.of(seconds)):
                self._process.stdin.write(pixels.data)
        except BrokenPipeError:
            self._end()

    def finish(self) -> None:
        """Write what is left, and end the file."""
        self._end()

    def _end(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        code = self._process.wait()
        if code:
            reason = _reason(_text(self._said)) or f"it ended with {code}"
            raise VitscopeError(
                f"ffmpeg cannot write the video ({reason}): mend that, or write .webp or .gif."
            )

    def close(self) -> None:
        """End the process if it lives."""
        self._process.kill()
        self._process.wait()
        self._said.close()


def writing_program() -> str:
    """Return the ffmpeg that writes videos."""
    return _program(
        "An MP4 is written by ffmpeg, which is not on the PATH: install it, or write .webp or .gif."
    )


def _program(without: str) -> str:
    found = shutil.which("ffmpeg")
    if found is None:
        raise VitscopeError(without)
    return found


def _text(said: IO[bytes]) -> bytes:
    said.seek(0)
    return said.read()


def _reason(said: bytes) -> str:
    """Return the first line of what ffmpeg says, without what says it."""
    lines = said.decode(errors="replace").strip().splitlines()
    return re.sub(r"^(\[[^\]]*\] )+", "", lines[0]).rstrip(".") if lines else ""
