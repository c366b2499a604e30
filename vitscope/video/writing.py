"""Write videos: animated WebP and GIF with Pillow, and MP4 with ffmpeg."""

import tempfile
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import escape

from PIL import Image
from PIL.TiffImagePlugin import AppendingTiffWriter

from vitscope.errors import VitscopeError, visible
from vitscope.video.frames import BrokenOffError, Frame, Ticks, find_ffmpeg_for_writing, write_film

FORMATS = ("webp", "gif", "mp4")
# The maximum number of bytes of all frames together: a temporary TIFF holds up to 4 GB, and for a
# GIF, Pillow keeps a third of the bytes in memory.
_MOST_BYTES = {"webp": 4_000_000_000, "gif": 1_000_000_000}
# The quality of a lossy WebP in percent, at which maps look the same as lossless ones.
_QUALITY = 90
# Ticks per second, and the minimum and the maximum number of ticks of a frame. Viewers slow down a
# GIF whose frames are shorter than 0.02 s.
_TICKS = {"webp": (1000, 1, (1 << 24) - 1), "gif": (100, 2, (1 << 16) - 1)}
_XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">{}'
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
)
_XMP_ENTRY = '<dc:{0}><rdf:Alt><rdf:li xml:lang="x-default">{1}</rdf:li></rdf:Alt></dc:{0}>'


def video_format(path: Path) -> str:
    found = path.suffix.removeprefix(".").lower()
    if found not in FORMATS:
        raise VitscopeError(f"Cannot write {path}: a video is one of .{', .'.join(FORMATS)}.")
    if found == "mp4":
        find_ffmpeg_for_writing()
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
        write_film(path, iter(frames), rate, facts)
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
