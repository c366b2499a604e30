"""Videos by ffmpeg, where it is on the PATH: frames come and go through a pipe."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import IO

from PIL import Image

from vitscope.errors import VitscopeError
from vitscope.video.frames import BrokenOffError, Frame, Ticks, Video

_QUIET = ("-hide_banner", "-loglevel", "error")
# Files of videos alone: lists of others, which may lie anywhere, are none.
_FORMATS = "mov,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,h264,hevc,yuv4mpegpipe,ivf,mxf"
_INPUT = ("-protocol_whitelist", "file,pipe", "-format_whitelist", _FORMATS)
# Pixels may be wider than high.
_SQUARE = "scale=iw*sar:ih,setsar=1,format=rgb24"
_HEADER = re.compile(rb"YUV4MPEG2 W(\d+) H(\d+) F(\d+):(\d+) ")
# More frames than these in a second are the clock of a file that has no rate.
_FASTEST, _USUAL = Fraction(240), Fraction(30)
# A rate for frames that are shown for different times, each as often as it takes.
_RATE_OF_CHANGING = Fraction(50)
_LONGEST_REPEAT = 1 << 20


def read(path: Path) -> Video:
    """Return the frames of a video, at the rate that it says."""
    program = _find_program(
        f"{path} is no folder and no animated GIF, WebP or PNG, and videos are read by ffmpeg, "
        f"which is not on the PATH: install it, or give one of these."
    )
    name = ("-i", f"file:{path.resolve()}", "-map", "0:v:0", "-vf", _SQUARE)
    source = (program, "-nostdin", *_QUIET, *_INPUT, "-err_detect", "explode", *name)
    probe = ("-frames:v", "1", "-pix_fmt", "yuv444p", "-f", "yuv4mpegpipe", "pipe:1")
    done = subprocess.run([*source, *probe], capture_output=True, check=False)
    found = _HEADER.match(done.stdout)
    if found is None:
        reason = _first_line(done.stderr) or "it has no frames"
        raise VitscopeError(
            f"{path} is no video that ffmpeg reads ({reason}): give a folder of frames, an "
            f"animated GIF, WebP or PNG, or another video."
        )
    width, height, *rates = map(int, found.groups())
    said = Fraction(*rates)
    rate = said if said <= _FASTEST else _USUAL
    every = ("-r", str(rate), "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1")
    return Video(rate, _read_frames(path, (*source, *every), (width, height), 1 / rate))


def _read_frames(
    path: Path, command: tuple[str, ...], size: tuple[int, int], seconds: Fraction
) -> Generator[Frame]:
    number, of_frame = 0, 3 * size[0] * size[1]
    with _run(command) as (process, said):
        assert process.stdout is not None
        while len(read := process.stdout.read(of_frame)) == of_frame:
            yield Frame(Image.frombytes("RGB", size, read), seconds)
            number += 1
        code, text = process.wait(), _text(said)
    if code or read or text.strip():
        reason = _first_line(text) or f"it ended with {code}"
        raise BrokenOffError(f"{path} breaks off behind frame {number} (ffmpeg says: {reason})")


def write(
    path: Path,
    frames: Iterable[Frame],
    size: tuple[int, int],
    rate: Fraction | None,
    facts: Mapping[str, str],
) -> None:
    """Write frames to an MP4, each as often as it takes: H.264, with sides of even lengths."""
    # A process that outlived its run may still write the file of this name, and no other.
    path.unlink(missing_ok=True)
    rate = rate or _RATE_OF_CHANGING
    ticks = Ticks(rate, 1, _LONGEST_REPEAT)
    with _run(_writing(path, size, rate, facts)) as (process, said):
        assert process.stdin is not None
        # An ffmpeg that fails no longer listens, and says why.
        with suppress(BrokenPipeError):
            for frame in frames:
                for _ in range(ticks.of(frame.seconds)):
                    process.stdin.write(frame.picture.tobytes())
            process.stdin.close()
        code = process.wait()
        if code:
            reason = _first_line(_text(said)) or f"it ended with {code}"
            raise VitscopeError(
                f"ffmpeg cannot write the video ({reason}): mend that, or write .webp or .gif."
            )


def _writing(
    path: Path, size: tuple[int, int], rate: Fraction, facts: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command that writes frames which come through a pipe."""
    width, height = size
    return (
        *(writing_program(), *_QUIET, "-y"),
        *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"),
        *("-r", str(rate), "-i", "pipe:0", "-vf"),
        "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white,"
        "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p",
        *("-c:v", "libx264", "-crf", "16", "-threads", "1"),
        *("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"),
        *("-color_range", "tv", "-movflags", "+faststart"),
        *(each for key, text in facts.items() for each in ("-metadata", f"{key}={text}")),
        *("-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "mp4", str(path)),
    )


@contextmanager
def _run(command: tuple[str, ...]) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Run ffmpeg while the block lasts; yield its process and the file of its messages."""
    # Messages have room in a file; a pipe that is not read would hold ffmpeg up.
    with tempfile.TemporaryFile() as said:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said)
        try:
            yield process, said
        finally:
            process.kill()
            with suppress(BrokenPipeError), process:
                pass


def writing_program() -> str:
    """Return the ffmpeg that writes videos."""
    return _find_program(
        "An MP4 is written by ffmpeg, which is not on the PATH: install it, or write .webp or .gif."
    )


def _find_program(without: str) -> str:
    found = shutil.which("ffmpeg")
    if found is None:
        raise VitscopeError(without)
    return found


def _text(said: IO[bytes]) -> bytes:
    said.seek(0)
    return said.read()


def _first_line(said: bytes) -> str:
    """Return the first message of ffmpeg, without the name of the part that says it."""
    lines = said.decode(errors="replace").strip().splitlines()
    return re.sub(r"^(\[[^\]]*\] )+", "", lines[0]).rstrip(".") if lines else ""
