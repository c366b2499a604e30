"""Pictures of every depth and mode are read as their twins in RGB of 8 bits, or refused."""

import io
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from tests.helpers.sources import open_path
from tests.security.bombs import in_memory, png
from vitscope.errors import VitscopeError
from vitscope.files.images import decode_image
from vitscope.scopes.images import WantedImages, store_scope_images
from vitscope.video.frames import open_video_frames

# Every value, and nothing symmetric: what is turned, inverted or cut off is another picture.
GREY = np.random.default_rng(0).permutation(np.arange(256, dtype=np.uint8)).reshape(8, 32)
COLOUR = np.random.default_rng(1).integers(0, 256, (8, 32, 3), dtype=np.uint8)
DEEP = Image.fromarray(GREY.astype(np.uint16) * 257)


def saved(image: Image.Image, format_: str, **more: Any) -> bytes:
    return in_memory(partial(image.save, format=format_, **more))


def with_alpha(image: Image.Image) -> Image.Image:
    image.putalpha(Image.fromarray(GREY[::-1].copy()))
    return image


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6  # Shown on its side.
    return exif


def tiff(image: Image.Image, tags: dict[int, Any]) -> bytes:
    directory = TiffImagePlugin.ImageFileDirectory_v2()
    directory.update(tags)
    return saved(image, "TIFF", tiffinfo=directory)


def png_of_48_bits() -> bytes:
    """Return what Pillow reads and does not write."""
    deep = (COLOUR.astype(">u2") * 257).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in deep)
    return png(COLOUR.shape[1], COLOUR.shape[0], 16, rows)


IN_COLOUR = Image.fromarray(COLOUR)
PALETTE = IN_COLOUR.quantize(256)
FILES: dict[str, tuple[Callable[[], bytes], np.ndarray]] = {
    "grey": (lambda: saved(Image.fromarray(GREY), "PNG"), GREY),
    "16-bit PNG": (lambda: saved(DEEP, "PNG"), GREY),
    "16-bit TIFF": (lambda: saved(DEEP, "TIFF"), GREY),
    "16-bit TIFF, high byte first": (
        lambda: saved(Image.fromarray(GREY.astype(">u2") * 257), "TIFF"),
        GREY,
    ),
    "16-bit PPM": (lambda: saved(DEEP, "PPM"), GREY),
    "48-bit PNG": (png_of_48_bits, COLOUR),
    "black and white": (
        lambda: saved(Image.fromarray(GREY > 99), "PNG"),
        np.where(GREY > 99, 255, 0),
    ),
    "palette": (lambda: saved(PALETTE, "PNG"), np.asarray(PALETTE.convert("RGB"))),
    "palette with a colour that is transparent": (
        lambda: saved(PALETTE, "PNG", transparency=3),
        np.asarray(PALETTE.convert("RGB")),
    ),
    "CMYK": (lambda: saved(IN_COLOUR.convert("CMYK"), "TIFF"), COLOUR),
    "alpha": (lambda: saved(with_alpha(IN_COLOUR.copy()), "PNG"), COLOUR),
    "grey with alpha": (lambda: saved(with_alpha(Image.fromarray(GREY)), "PNG"), GREY),
    "turned by EXIF": (lambda: saved(IN_COLOUR, "PNG", exif=turned()), COLOUR),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_as_its_twin(kind: str) -> None:
    content, twin = FILES[kind]
    found = decode_image(io.BytesIO(content()), kind)
    wanted = twin if twin.ndim == 3 else np.stack([twin] * 3, axis=2)
    assert found.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize(
    "content",
    [
        lambda: saved(Image.fromarray(GREY.astype(np.float32)), "TIFF"),
        lambda: saved(Image.fromarray(GREY.astype(np.int32)), "TIFF"),
        lambda: saved(Image.new("LAB", (3, 3)), "TIFF"),
        # 0 is white, of which Pillow says nothing.
        lambda: tiff(DEEP, {262: 0}),
    ],
    ids=["32-bit floats", "32-bit integers", "LAB", "inverted"],
)
def test_what_nothing_says_the_range_of_is_refused(content: Callable[[], bytes]) -> None:
    with pytest.raises(VitscopeError, match=r"a has pixels of the mode .*: save it with 8 bits"):
        decode_image(io.BytesIO(content()), "a")


def test_folders_masks_and_frames_are_scaled(tmp_path: Path) -> None:
    for name in ("a.png", "a.mask.png"):
        DEEP.save(tmp_path / name)
    (sample,) = open_path("folder", tmp_path).samples(np.array([0]))
    assert sample.mask is not None
    (tmp_path / "a.mask.png").unlink()
    (frame,) = open_video_frames(tmp_path).frames
    for found in (sample.image, sample.mask, frame.picture):
        np.testing.assert_array_equal(np.asarray(found)[..., 0], GREY)


def test_pictures_in_memory_are_scaled(tmp_path: Path) -> None:
    def pixels(picture: Image.Image, place: str) -> np.ndarray:
        wanted = WantedImages(0, 1, None)
        return store_scope_images(
            [picture], None, wanted, lambda _: None, tmp_path / place
        ).split.images([0])[0]

    np.testing.assert_array_equal(pixels(DEEP, "deep"), GREY[None])
    np.testing.assert_array_equal(
        pixels(IN_COLOUR.convert("CMYK"), "cmyk"), COLOUR.transpose(2, 0, 1)
    )
    with pytest.raises(VitscopeError, match=r"A picture of `images` has pixels of the mode F"):
        pixels(Image.fromarray(GREY.astype(np.float32)), "floats")


def test_a_webp_may_have_half_as_many_pixels(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), shade) for shade in ("red", "blue")]
    data = bytearray(saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]))
    # The width and height of the canvas, less one; the frames stay small.
    assert data[12:16] == b"VP8X"
    data[24:30] = (9_999).to_bytes(3, "little") * 2
    with pytest.raises(VitscopeError, match="is a WebP of 100000000 pixels, allowed: 8947"):
        decode_image(io.BytesIO(data), "a.webp")


def test_16_bits_take_no_more_memory_than_8_bits_may(tmp_path: Path) -> None:
    pixels = np.arange(2000 * 2000, dtype=np.uint16).reshape(2000, 2000)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    tracemalloc.start()
    picture = decode_image(tmp_path / "a.png", "a")
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Two bytes for each value, twice while Pillow hands them over, and one for each result.
    assert taken < 6 * pixels.size
    expected = np.round(pixels / 257).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(picture)[..., 0], expected)
