"""The container of WebP: chunks of a name and a size, and what a frame of an animation says."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

HEAD = struct.Struct("<4sI")
# The chunks that a picture is: its pixels in one of two formats, and the alpha of the first.
PIXELS = (b"VP8 ", b"VP8L")
ALPHA = b"ALPH"
# Of the features of a file: which has alpha, a text that describes it, an animation.
HAS_ALPHA, HAS_XMP, IS_ANIMATED = 0x10, 0x04, 0x02
# Of a frame: it takes the place of what is below it; its place is emptied when its time is over.
REPLACES, IS_CLEARED = 0x02, 0x01
HEAD_OF_FRAME = 16


class Chunk(NamedTuple):
    """A chunk in a file: where its content begins, and how long it is."""

    name: bytes
    start: int
    size: int


def chunk(name: bytes, content: bytes) -> bytes:
    """Return a chunk, filled to an even length."""
    return HEAD.pack(name, len(content)) + content + b"\0" * (len(content) % 2)


def chunks(file: BinaryIO, start: int, end: int) -> Iterator[Chunk]:
    """Yield the chunks of a part of a file, which may be read in between."""
    while start + HEAD.size <= end:
        file.seek(start)
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            return
        name, size = HEAD.unpack(head)
        yield Chunk(name, start + HEAD.size, size)
        start += HEAD.size + size + size % 2


def three_bytes(*numbers: int) -> bytes:
    """Return numbers of 24 bits."""
    return b"".join(number.to_bytes(3, "little") for number in numbers)


def features(flags: int, width: int, height: int) -> bytes:
    """Return the chunk that says what a file has, and how large its pictures are."""
    return chunk(b"VP8X", bytes([flags, 0, 0, 0]) + three_bytes(width - 1, height - 1))


@dataclass(frozen=True)
class Place:
    """Where a frame of an animation lies, for how many milliseconds, and what becomes of it."""

    x: int
    y: int
    width: int
    height: int
    duration: int
    flags: int

    @classmethod
    def read(cls, head: bytes) -> "Place":
        """Return the place that a frame begins with."""
        x, y, width, height, duration = (
            int.from_bytes(head[at : at + 3], "little") for at in range(0, 15, 3)
        )
        return cls(2 * x, 2 * y, width + 1, height + 1, duration, head[15])

    def written(self) -> bytes:
        """Return what a frame of this place begins with."""
        numbers = (self.x // 2, self.y // 2, self.width - 1, self.height - 1, self.duration)
        return three_bytes(*numbers) + bytes([self.flags])
