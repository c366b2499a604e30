"""Videos as files, written as frames come: animated WebP and GIF, and MP4 by ffmpeg.

Pillow holds all frames of an animation until it is saved. So each frame is encoded by itself, as a
picture, and put into the container here.
"""

import io
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, Protocol
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.errors import VitscopeError
from vitscope.video import ffmpeg, riff
from vitscope.video.frames import Ticks

Pixels = npt.NDArray[np.uint8]

FORMATS = ("webp", "gif", "mp4")
# Of a lossy WebP, in percent: maps differ from what was drawn by no more than one sees.
QUALITY = 90
# The sizes in the head of a WebP have 32 bits, and a frame's time 24.
_LARGEST_WEBP, _LONGEST_WEBP = (1 << 32) - 10, (1 << 24) - 1
# Viewers show frames of GIF that have less than 0.02 s slowly.
_SHORTEST_GIF, _LONGEST_GIF = 2, (1 << 16) - 1
_COLORS_OF_GIF = 256
# Of 8 bits: what differs less from a steady colour takes that.
_NEAR_ENOUGH = 8
_XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">{}'
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
)
_XMP_ENTRY = '<dc:{0}><rdf:Alt><rdf:li xml:lang="x-default">{1}</rdf:li></rdf:Alt></dc:{0}>'


class Writer(Protocol):
    """Takes frames of one size, and ends the file."""

    def add(self, pixels: Pixels, seconds: Fraction) -> None:
        """Write a frame, (H, W, 3)."""

    def finish(self) -> None:
        """Write what follows the last frame."""

    def close(self) -> None:
        """Let go of the file, finished or not."""


def format_of(path: Path) -> str:
    """Return the format that a file has by its name, if it can be written here."""
    found = path.suffix.removeprefix(".").lower()
    if found not in FORMATS:
        raise VitscopeError(f"Cannot write {path}: a video is one of .{', .'.join(FORMATS)}.")
    if found == "mp4":
        ffmpeg.writing_program()
    return found


@contextmanager
def writing(
    path: Path,
    kind: str,
    size: tuple[int, int],
    rate: Fraction | None,
    facts: Mapping[str, str],
    *,
    lossless: bool = False,
    steady: Pixels | None = None,
) -> Iterator[Writer]:
    """Give what writes frames of (width, height) to a file, which is whole when the block ends.

    `facts` are the title and what else the file says of itself, `rate` how many frames there are in
    a second, None if that changes. A WebP may be `lossless`; a GIF has the `steady` colours, (n,
    3), in all frames.
    """
    writer: Writer
    if kind == "webp":
        writer = _Webp(path, size, facts, lossless)
    elif kind == "gif":
        writer = _Gif(path, size, facts, steady)
    else:
        writer = ffmpeg.Mp4(path, size, rate, facts)
    with closing(writer):
        yield writer
        writer.finish()


class _Webp:
    """Writes an animated WebP that repeats for ever."""

    def __init__(
        self, path: Path, size: tuple[int, int], facts: Mapping[str, str], lossless: bool
    ) -> None:
        self._size, self._lossless = size, lossless
        self._facts = facts
        self._ticks = Ticks(1000, 1, _LONGEST_WEBP)
        self._file: BinaryIO = path.open("wb")
        # How large the file is, is said when it is whole: what has no size is none.
        self._file.write(riff.HEAD.pack(b"RIFF", 0) + b"WEBP")
        self._file.write(riff.features(riff.IS_ANIMATED | riff.HAS_XMP, *size))
        self._file.write(riff.chunk(b"ANIM", b"\xff\xff\xff\xff" + struct.pack("<H", 0)))

    def add(self, pixels: Pixels, seconds: Fraction) -> None:
        """Write a frame, (H, W, 3)."""
        still = io.BytesIO()
        Image.fromarray(pixels).save(still, "WEBP", quality=QUALITY, lossless=self._lossless)
        place = riff.Place(0, 0, *self._size, self._ticks.of(seconds), riff.REPLACES)
        encoded = still.getvalue()
        parts = [
            riff.chunk(each.name, encoded[each.start : each.start + each.size])
            for each in riff.chunks(still, 12, len(encoded))
            if each.name in (*riff.PIXELS, riff.ALPHA)
        ]
        frame = riff.chunk(b"ANMF", place.written() + b"".join(parts))
        if self._file.tell() + len(frame) > _LARGEST_WEBP:
            raise VitscopeError("A WebP has at most 4 GB: show fewer frames, or write .mp4.")
        self._file.write(frame)

    def finish(self) -> None:
        """Write what the file says of itself, and how large it is."""
        entries = (_XMP_ENTRY.format(key, escape(text)) for key, text in self._facts.items())
        self._file.write(riff.chunk(b"XMP ", _XMP.format("".join(entries)).encode()))
        size = self._file.tell()
        self._file.seek(0)
        self._file.write(riff.HEAD.pack(b"RIFF", size - riff.HEAD.size))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Gif:
    """Writes an animated GIF that repeats for ever, each frame in colours of its own.

    What has steady colours does not flicker when others change.
    """

    def __init__(
        self, path: Path, size: tuple[int, int], facts: Mapping[str, str], steady: Pixels | None
    ) -> None:
        self._facts = facts
        self._steady = np.zeros((0, 3), np.uint8) if steady is None else steady
        self._ticks = Ticks(100, _SHORTEST_GIF, _LONGEST_GIF)
        self._file: BinaryIO = path.open("wb")
        # No colours of the whole file; an extension by which it repeats.
        self._file.write(b"GIF89a" + struct.pack("<HHBBB", *size, 0x70, 0, 0))
        self._file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")

    def add(self, pixels: Pixels, seconds: Fraction) -> None:
        """Write a frame, (H, W, 3)."""
        colors, described, encoded = _one_frame(pixels, self._steady)
        control = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 1 << 2, self._ticks.of(seconds), 0, 0)
        # Its colours stand behind its place, and how many these are in the last of its bits.
        bits = (len(colors) // 3).bit_length() - 2
        place = described[:-1] + bytes([0x80 | bits])
        self._file.write(control + place + colors + encoded)

    def finish(self) -> None:
        """Write what the file says of itself, and its end."""
        text = "\n".join(f"{key}: {text}" for key, text in self._facts.items()).encode()
        parts = [text[at : at + 255] for at in range(0, len(text), 255)]
        blocks = b"".join(bytes([len(part)]) + part for part in parts)
        self._file.write(b"\x21\xfe" + blocks + b"\x00;")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _one_frame(pixels: Pixels, steady: Pixels) -> tuple[bytes, bytes, bytes]:
    """Encode a frame as a GIF of its own; return its colours, its place, and its pixels."""
    few = _in_few_colors(pixels, steady)
    still = io.BytesIO()
    few.save(still, "GIF", interlace=False, optimize=False)
    data = still.getvalue()
    count = 2 << (data[10] & 7)
    start = 13 + 3 * count
    colors, at = data[13:start], start
    while data[at] == 0x21:
        at = _behind_blocks(data, at + 2)
    end = _behind_blocks(data, at + 11)
    return colors, data[at : at + 10], data[at + 10 : end]


def _in_few_colors(pixels: Pixels, steady: Pixels) -> Image.Image:
    """Return a frame in the steady colours, and in more where these are not near enough."""
    picture = Image.fromarray(pixels)
    if not len(steady):
        return picture.quantize(_COLORS_OF_GIF, dither=Image.Dither.NONE)
    palette = Image.new("P", (1, 1))
    palette.putpalette(steady.ravel().tolist())
    few = picture.quantize(palette=palette, dither=Image.Dither.NONE)
    off = np.abs(np.asarray(few.convert("RGB"), np.int16) - pixels).max(-1) > _NEAR_ENOUGH
    if not off.any():
        return few
    others = Image.fromarray(pixels[off][None]).quantize(_COLORS_OF_GIF - len(steady))
    palette.putpalette([*steady.ravel().tolist(), *(others.getpalette() or ())])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def _behind_blocks(data: bytes, at: int) -> int:
    """Return where a row of blocks ends, each of which begins with its length."""
    while data[at]:
        at += 1 + data[at]
    return at + 1
