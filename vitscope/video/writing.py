"""Write videos: animated WebP and GIF with Pillow, and MP4 with ffmpeg."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from itertools import chain
from pathlib import Path
from xml.sax.saxutils import escape

from PIL import Image
from PIL.TiffImagePlugin import AppendingTiffWriter

from vitscope.errors import VitscopeError, visible
from vitscope.video.frames import (
    QUIET,
    BrokenOffError,
    Frame,
    find_ffmpeg,
    first_message,
    read_messages,
    run_ffmpeg,
)

FORMATS = ("webp", "gif", "mp4")
# The maximum number of bytes of all frames together: a temporary TIFF holds up to 4 GB, and for a
# GIF, Pillow keeps a third of the bytes in memory.
_MOST_BYTES = {"webp": 4_000_000_000, "gif": 1_000_000_000}
# The quality of a lossy WebP in percent, at which maps look the same as lossless ones.
_QUALITY = 90
# Ticks per second, and the minimum and the maximum number of ticks of a frame. Viewers slow down a
# GIF whose frames are shorter than 0.02 s.
_TICKS = {"webp": (1000, 1, (1 << 24) - 1), "gif": (100, 2, (1 << 16) - 1)}
# The frame rate for frames of different durations, each repeated to fill its duration.
_RATE_OF_CHANGING = Fraction(50)
_LONGEST_REPEAT = 1 << 20
_XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">{}'
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
)
_XMP_ENTRY = '<dc:{0}><rdf:Alt><rdf:li xml:lang="x-default">{1}</rdf:li></rdf:Alt></dc:{0}>'


class Ticks:
    """Converts durations to whole ticks; each frame makes up for the rounding of earlier ones."""

    def __init__(self, per_second: Fraction | int, least: int, most: int) -> None:
        self._per_second, self._least, self._most = per_second, least, most
        self._end = Fraction(0)
        self._given = 0

    def of(self, seconds: Fraction) -> int:
        self._end += seconds * self._per_second
        ticks = min(max(round(self._end) - self._given, self._least), self._most)
        self._given += ticks
        return ticks


def _find_ffmpeg_for_writing() -> str:
    return find_ffmpeg(
        "An MP4 is written by ffmpeg, which is not on the PATH: install it, or write .webp or .gif."
    )


def video_format(path: Path) -> str:
    found = path.suffix.removeprefix(".").lower()
    if found not in FORMATS:
        raise VitscopeError(f"Cannot write {path}: a video is one of .{', .'.join(FORMATS)}.")
    if found == "mp4":
        _find_ffmpeg_for_writing()
    return found


def title_and_description(title: str, facts: Mapping[str, str]) -> dict[str, str]:
    description = "; ".join(f"{key}: {text}" for key, text in facts.items())
    return {"title": visible(title), "description": visible(description)}


def check_video_size(kind: str, frames: int, page: Image.Image) -> None:
    width, height = page.size
    if kind in _MOST_BYTES and (frames + 1) * width * height * 3 > _MOST_BYTES[kind]:
        raise BrokenOffError(
            f"A .{kind} has room for {frames} frames of {width}x{height} pixels, and an .mp4 for "
            f"any number"
        )


def write_frames(
    path: Path,
    kind: str,
    frames: Iterable[Frame],
    facts: Mapping[str, str],
    rate: Fraction | None = None,
    *,
    lossless: bool = False,
) -> None:
    """Write one or more frames to an MP4, or to an animated WebP or GIF that repeats forever."""
    if kind == "mp4":
        _write_film(path, iter(frames), rate, facts)
        return
    per_second, least, most = _TICKS[kind]
    ticks, durations = Ticks(per_second, least, most), []
    # Write frames to a TIFF, whose pages Pillow reads one by one; it would keep a list in memory.
    with tempfile.TemporaryFile(dir=path.parent) as file:
        with AppendingTiffWriter(file, new=True) as pages:
            for frame in frames:
                frame.picture.save(pages, "TIFF")
                pages.newFrame()
                durations.append(ticks.of(frame.seconds) * 1000 // per_second)
        file.seek(0)
        with Image.open(file, formats=["TIFF"]) as image:
            comment = "\n".join(f"{key}: {text}" for key, text in facts.items()).encode()
            entries = (_XMP_ENTRY.format(key, escape(text)) for key, text in facts.items())
            xmp = _XMP.format("".join(entries)).encode()
            of_webp = {"quality": _QUALITY, "lossless": lossless, "xmp": xmp}
            said = of_webp if kind == "webp" else {"comment": comment}
            image.save(path, kind, save_all=True, duration=durations, loop=0, **said)


def _write_film(
    path: Path, frames: Iterator[Frame], rate: Fraction | None, facts: Mapping[str, str]
) -> None:
    """Write frames to an H.264 MP4, each repeated to fill its duration; pad odd sides."""
    first = next(frames)
    # Delete an older file, since a process that outlived its run may still write to it.
    path.unlink(missing_ok=True)
    rate = rate or _RATE_OF_CHANGING
    ticks = Ticks(rate, 1, _LONGEST_REPEAT)
    width, height = first.picture.size
    command = (
        *(_find_ffmpeg_for_writing(), *QUIET, "-y"),
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
    with run_ffmpeg(command) as (process, said):
        assert process.stdin is not None
        # If ffmpeg fails, it stops reading, and says why in its messages.
        with suppress(BrokenPipeError):
            for frame in chain([first], frames):
                for _ in range(ticks.of(frame.seconds)):
                    process.stdin.write(frame.picture.tobytes())
            process.stdin.close()
        code = process.wait()
        if code:
            reason = first_message(read_messages(said)) or f"it ended with {code}"
            raise VitscopeError(
                f"ffmpeg cannot write the video ({reason}): mend that, or write .webp or .gif."
            )
