"""What is written is read back by Pillow and by ffmpeg: number of frames, times, and pixels."""

import struct
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tests.video.pictures import Pixels, frames
from vitscope.errors import VitscopeError
from vitscope.video import ffmpeg as by_ffmpeg
from vitscope.video.drawing import colored, steady_colors
from vitscope.video.writing import format_of, writing

FACTS = {"title": "walk <1>", "description": "ViT & Größe; Study: own"}
THIRTIETH = Fraction(1, 30)


def write(
    path: Path, shown: list[Pixels], seconds: list[Fraction], rate: Fraction | None = None, **more
) -> Path:
    height, width, _ = shown[0].shape
    with writing(path, format_of(path), (width, height), rate, FACTS, **more) as writer:
        for pixels, each in zip(shown, seconds, strict=True):
            writer.add(pixels, each)
    return path


def read_back(path: Path) -> tuple[list[npt.NDArray[np.int16]], list[int]]:
    """Return the frames of an animated picture and how long each is shown, as Pillow has them."""
    found, durations = [], []
    with Image.open(path) as image:
        for number in range(image.n_frames):
            image.seek(number)
            found.append(np.asarray(image.convert("RGB"), np.int16))
            durations.append(image.info["duration"])
    return found, durations


@pytest.mark.parametrize("size", [(24, 16), (25, 17), (1, 1)])
def test_a_lossless_webp_has_every_pixel(tmp_path: Path, size: tuple[int, int]) -> None:
    shown = frames(4, size)
    path = write(tmp_path / "a.webp", shown, [THIRTIETH] * 4, lossless=True)
    found, durations = read_back(path)
    np.testing.assert_array_equal(found, shown)
    # What is rounded of one is made up by the next.
    assert durations == [33, 34, 33, 33]


def test_a_lossy_webp_is_near(tmp_path: Path) -> None:
    shown = frames(4, (160, 96))
    path = write(tmp_path / "a.webp", shown, [THIRTIETH] * 4)
    found, _ = read_back(path)
    off = np.abs(np.array(found) - shown)
    assert off.mean() < 2
    assert (
        path.stat().st_size
        < write(tmp_path / "b.webp", shown, [THIRTIETH] * 4, lossless=True).stat().st_size
    )


def test_a_webp_says_its_size_and_what_it_is_of(tmp_path: Path) -> None:
    path = write(tmp_path / "a.webp", frames(2), [THIRTIETH] * 2)
    data = path.read_bytes()
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    with Image.open(path) as image:
        assert image.info["loop"] == 0
        described = ElementTree.fromstring(image.info["xmp"])
    assert [text.strip() for text in described.itertext()] == [*FACTS.values()]


def test_a_gif_has_few_colours_exactly(tmp_path: Path) -> None:
    few = [pixels // 128 * 255 for pixels in frames(4)]
    path = write(tmp_path / "a.gif", few, [Fraction(1, 10), *[THIRTIETH] * 3])
    found, durations = read_back(path)
    np.testing.assert_array_equal(found, few)
    # Hundredths of a second: what is rounded of one is made up by the next.
    assert durations == [100, 30, 40, 30]
    with Image.open(path) as image:
        assert image.info["loop"] == 0
    assert FACTS["description"].encode() in path.read_bytes()


def test_a_gif_of_many_colours_is_near(tmp_path: Path) -> None:
    shown = frames(3, (160, 96))
    found, _ = read_back(write(tmp_path / "a.gif", shown, [THIRTIETH] * 3))
    assert np.abs(np.array(found) - shown).mean() < 6


def test_maps_keep_their_colours_in_a_gif_whatever_is_beside_them(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    # A map, and noise of all colours, which is another in each frame.
    bar = np.broadcast_to(colored(np.linspace(0, 1, 200)), (20, 200, 3))
    noise = [chance.integers(0, 256, (60, 200, 3), dtype=np.uint8) for _ in range(3)]
    shown = [np.concatenate([bar, each]) for each in noise]
    path = write(tmp_path / "a.gif", shown, [THIRTIETH] * 3, steady=steady_colors())
    for found in read_back(path)[0]:
        assert np.abs(found[:20] - bar).max() <= 8


def test_frames_of_a_gif_are_shown_as_long_as_viewers_allow(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gif", frames(3), [Fraction(1, 240)] * 3)
    assert read_back(path)[1] == [20, 20, 20]


@pytest.mark.parametrize(("size", "even"), [((64, 48), (64, 48)), ((63, 47), (64, 48))])
def test_an_mp4_is_near_and_has_its_rate(tmp_path, ffmpeg, size, even) -> None:
    shown = frames(6, size)
    rate = Fraction(30000, 1001)
    path = write(tmp_path / "a.mp4", shown, [1 / rate] * 6, rate)
    video = by_ffmpeg.read(path)
    found = [np.asarray(frame.picture, np.int16) for frame in video.frames]
    assert video.rate == rate
    assert [each.shape for each in found] == [(even[1], even[0], 3)] * 6
    width, height = size
    off = np.abs(np.array(found)[:, :height, :width] - shown)
    # Colours have half the resolution, and change between neighbours here.
    assert off.mean() < 8
    # What was added to make sides even is white.
    added = np.array(found)[:, height:]
    assert added.size == 0 or added.mean() > 200
    assert b"Lavf" not in path.read_bytes()


def test_colours_of_an_mp4_are_those_that_were_written(tmp_path, ffmpeg) -> None:
    flat = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [252, 255, 164], [87, 16, 110]])
    pixels = np.broadcast_to(flat.astype(np.uint8)[:, None, None], (5, 32, 32, 3)).copy()
    path = write(tmp_path / "a.mp4", [*pixels], [THIRTIETH] * 5, 1 / THIRTIETH)
    found = [np.asarray(frame.picture, np.int16) for frame in by_ffmpeg.read(path).frames]
    assert np.abs(np.array(found) - pixels).max() <= 6


def test_an_mp4_of_frames_with_times_of_their_own(tmp_path, ffmpeg) -> None:
    shown = frames(3, (64, 48))
    path = write(tmp_path / "a.mp4", shown, [Fraction(1, 10), Fraction(1, 2), Fraction(1, 25)])
    found = [np.asarray(frame.picture, np.int16) for frame in by_ffmpeg.read(path).frames]
    nearest = [int(np.argmin([np.abs(each - one).mean() for one in shown])) for each in found]
    # At 50 in a second.
    assert nearest == [0] * 5 + [1] * 25 + [2] * 2


def test_the_same_frames_give_the_same_bytes(tmp_path, ffmpeg) -> None:
    for suffix in ("webp", "gif", "mp4"):
        one, other = (
            write(tmp_path / f"{name}.{suffix}", frames(3, (64, 48)), [THIRTIETH] * 3)
            for name in "ab"
        )
        assert one.read_bytes() == other.read_bytes(), suffix


def test_what_is_not_finished_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "a.webp"
    with writing(path, "webp", (24, 16), None, FACTS) as writer:
        writer.add(frames(1)[0], THIRTIETH)
        writer._file.flush()  # type: ignore[attr-defined]
        half = path.read_bytes()
    assert struct.unpack("<I", half[4:8])[0] == 0
    (tmp_path / "half.webp").write_bytes(half)
    with pytest.raises(OSError, match="decoder"):
        Image.open(tmp_path / "half.webp")


def test_only_known_formats_are_written() -> None:
    with pytest.raises(VitscopeError) as caught:
        format_of(Path("walk.avi"))
    assert str(caught.value) == "Cannot write walk.avi: a video is one of .webp, .gif, .mp4."


def test_an_mp4_needs_ffmpeg(without_ffmpeg: None) -> None:
    with pytest.raises(VitscopeError) as caught:
        format_of(Path("walk.mp4"))
    assert str(caught.value) == (
        "An MP4 is written by ffmpeg, which is not on the PATH: install it, or write .webp or .gif."
    )


def test_an_ffmpeg_that_fails_is_told(tmp_path, ffmpeg) -> None:
    # So many that ffmpeg is gone before all are written.
    many = [np.zeros((480, 640, 3), np.uint8)] * 100
    with pytest.raises(VitscopeError, match=r"^ffmpeg cannot write the video \(.*No such file"):
        write(tmp_path / "none" / "a.mp4", many, [THIRTIETH] * 100)
