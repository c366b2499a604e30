"""Animated pictures, frame by frame: GIF and PNG as Pillow reads them, WebP from its container.

Pillow holds a whole WebP in memory, and reads nothing of one that breaks off.
"""

import io
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from vitscope.errors import VitscopeError
from vitscope.files.images import FORMATS, LARGEST_IMAGE
from vitscope.video import riff
from vitscope.video.frames import BrokenOffError, Frame, milliseconds

# How files of each format begin.
_GIF, _PNG, _RIFF = b"GIF8", b"\x89PNG\r\n\x1a\n", b"RIFF"
_TRAILER_OF_GIF = b";"


def animation(path: Path) -> Generator[Frame] | None:
    """Return the frames of an animated picture, or None if a file is none; a still is refused."""
    with path.open("rb") as file:
        start = file.read(12)
    if start.startswith(_GIF):
        return _gif(path)
    if start.startswith(_PNG) and _frames_of_png(path) > 1:
        return _png(path)
    if start.startswith(_RIFF) and start.endswith(b"WEBP") and _is_animated_webp(path):
        return _webp(path)
    if _is_picture(path):
        raise VitscopeError(
            f"{path} is a picture and no video: give a folder of frames, an animated GIF, WebP or "
            f"PNG, or a video."
        )
    return None


def _is_picture(path: Path) -> bool:
    """Tell whether Pillow knows a file as a picture."""
    try:
        with Image.open(path, formats=FORMATS):
            return True
    except Exception:
        # Damaged bytes make the decoders fail in every way there is.
        return False


def _breaks_off(path: Path, number: int) -> BrokenOffError:
    return BrokenOffError(f"{path} breaks off in frame {number}")


def _pictures(path: Path, file: BinaryIO, kind: str, first: int = 0) -> Generator[Frame, None, int]:
    """Yield the frames that Pillow finds; return how many there were."""
    number = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=[kind]) as image:
                while True:
                    try:
                        image.seek(first + number)
                    except EOFError:
                        return number
                    picture = image.convert("RGB")
                    yield Frame(picture, milliseconds(image.info.get("duration", 0)))
                    number += 1
    except Exception as error:
        # Damaged bytes make the decoders fail in every way there is.
        raise _breaks_off(path, number + 1) from error


def _gif(path: Path) -> Generator[Frame]:
    with path.open("rb") as file:
        found = yield from _pictures(path, file, "GIF")
        # Pillow stops at the byte that ends the file, or at the end of a file that lacks it.
        file.seek(-1, io.SEEK_CUR)
        if file.read(1) != _TRAILER_OF_GIF:
            raise _breaks_off(path, found + 1)


def _frames_of_png(path: Path) -> int:
    try:
        with Image.open(path, formats=["PNG"]) as image:
            return int(getattr(image, "n_frames", 1))
    except Exception:
        return 0


def _png(path: Path) -> Generator[Frame]:
    with path.open("rb") as file, Image.open(path, formats=["PNG"]) as image:
        # What is shown where animations are not known may be no frame of it.
        first = int(bool(image.info.get("default_image")))
        found = yield from _pictures(path, file, "PNG", first)
        if first + found < getattr(image, "n_frames", 1):
            raise _breaks_off(path, found + 1)


def _is_animated_webp(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(21)
    return start[12:16] == b"VP8X" and bool(start[20:] and start[20] & riff.IS_ANIMATED)


def _webp(path: Path) -> Generator[Frame]:
    with path.open("rb") as file:
        head = file.read(30)
        (size,) = riff.HEAD.unpack(head[: riff.HEAD.size])[1:]
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        if width * height > LARGEST_IMAGE:
            raise VitscopeError(f"{path} has frames of {width}x{height} pixels: give smaller ones.")
        canvas = Image.new("RGBA", (width, height))
        number, end = 0, riff.HEAD.size + size
        for found in riff.chunks(file, 12, end):
            if found.name != b"ANMF":
                continue
            number += 1
            try:
                frame = _drawn(file, found, canvas)
            except Exception as error:
                raise _breaks_off(path, number) from error
            yield frame
        if file.seek(0, io.SEEK_END) < end or size == 0:
            raise _breaks_off(path, number + 1)


def _drawn(file: BinaryIO, found: riff.Chunk, canvas: Image.Image) -> Frame:
    """Draw a frame of a WebP on what is there, and return how that looks."""
    file.seek(found.start)
    content = file.read(found.size)
    if len(content) < found.size:
        raise EOFError
    place = riff.Place.read(content[: riff.HEAD_OF_FRAME])
    patch = _patch(content, place)
    box = (place.x, place.y, place.x + place.width, place.y + place.height)
    if place.flags & riff.REPLACES:
        canvas.paste(patch, box)
    else:
        canvas.alpha_composite(patch, box[:2])
    shown = canvas.convert("RGB")
    if place.flags & riff.IS_CLEARED:
        canvas.paste((0, 0, 0, 0), box)
    return Frame(shown, milliseconds(place.duration))


def _patch(content: bytes, place: riff.Place) -> Image.Image:
    """Decode the pixels of a frame, as a picture of their own."""
    parts = {}
    inner = io.BytesIO(content)
    for each in riff.chunks(inner, riff.HEAD_OF_FRAME, len(content)):
        if each.name in (*riff.PIXELS, riff.ALPHA):
            parts[each.name] = riff.chunk(each.name, content[each.start : each.start + each.size])
    body = b"".join(parts.values())
    if riff.ALPHA in parts:
        body = riff.features(riff.HAS_ALPHA, place.width, place.height) + body
    still = riff.chunk(b"RIFF", b"WEBP" + body)
    with Image.open(io.BytesIO(still), formats=["WEBP"]) as image:
        if image.size != (place.width, place.height):
            raise ValueError(image.size)
        return image.convert("RGBA")
