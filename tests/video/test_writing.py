from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tests.helpers.refusals import refusal
from tests.video.pictures import Pixels, frames, read_timed
from vitscope.errors import VitscopeError
from vitscope.video import writing
from vitscope.video.frames import BrokenOffError, Frame, read_film
from vitscope.video.writing import Ticks, check_video_size, video_format, write_frames

FACTS = {"title": "walk <1>", "description": "ViT & Größe; Study: own"}
TENTH, THIRTIETH = Fraction(1, 10), Fraction(1, 30)


def write(
    path: Path, shown: list[Pixels], seconds: list[Fraction], rate: Fraction | None = None, **more
) -> Path:
    pairs = zip(shown, seconds, strict=True)
    pages = (Frame(Image.fromarray(pixels), each) for pixels, each in pairs)
    write_frames(path, video_format(path), pages, FACTS, rate, **more)
    return path


def read_back(path: Path) -> tuple[npt.NDArray[np.int16], list[int]]:
    """Return the frames of an animated picture, and the milliseconds of each."""
    found, durations = zip(*read_timed(path), strict=True)
    return np.array(found, np.int16), list(durations)


def pixels_of(path: Path) -> npt.NDArray[np.int16]:
    frames = read_film(path).frames
    return np.array([np.asarray(frame.picture, np.int16) for frame in frames])


@pytest.mark.parametrize("size", [(24, 16), (25, 17)])
def test_a_lossless_webp_has_every_pixel(tmp_path: Path, size: tuple[int, int]) -> None:
    shown = frames(4, size)
    path = write(tmp_path / "a.webp", shown, [THIRTIETH] * 4, lossless=True)
    found, durations = read_back(path)
    np.testing.assert_array_equal(found, shown)
    # What is rounded of one is made up by the next.
    assert durations == [33, 34, 33, 33]


def test_a_gif_has_few_colours_exactly_and_many_nearly(tmp_path: Path) -> None:
    few = [pixels // 128 * 255 for pixels in frames(4)]
    path = write(tmp_path / "a.gif", few, [TENTH, *[THIRTIETH] * 3])
    found, durations = read_back(path)
    np.testing.assert_array_equal(found, few)
    # Hundredths of a second: what is rounded of one is made up by the next.
    assert durations == [100, 30, 40, 30]
    many = frames(3, (160, 96))
    found, durations = read_back(write(tmp_path / "a.gif", many, [Fraction(1, 240)] * 3))
    assert np.abs(found - many).mean() < 6
    # As long as viewers allow.
    assert durations == [20, 20, 20]


def test_pictures_say_what_they_are_made_from(tmp_path: Path) -> None:
    for suffix in ("webp", "gif"):
        path = write(tmp_path / f"a.{suffix}", frames(2), [THIRTIETH] * 2)
        with Image.open(path) as image:
            assert image.info["loop"] == 0
            if suffix == "webp":
                said = [*ElementTree.fromstring(image.info["xmp"]).itertext()]
                assert [text.strip() for text in said] == [*FACTS.values()]
            else:
                lines = [f"{key}: {text}" for key, text in FACTS.items()]
                assert image.info["comment"].decode().splitlines() == lines


@pytest.mark.parametrize(("size", "even"), [((64, 48), (64, 48)), ((63, 47), (64, 48))])
def test_an_mp4_is_near_and_has_its_rate(tmp_path, ffmpeg, size, even) -> None:
    shown = frames(6, size)
    rate = Fraction(30000, 1001)
    path = write(tmp_path / "a.mp4", shown, [1 / rate] * 6, rate)
    found = pixels_of(path)
    assert read_film(path).rate == rate
    assert found.shape == (6, even[1], even[0], 3)
    width, height = size
    # Colours have half the resolution, and change between neighbours here.
    assert np.abs(found[:, :height, :width] - shown).mean() < 8
    # What was added to make sides even is white.
    added = found[:, height:]
    assert added.size == 0 or added.mean() > 200
    assert b"Lavf" not in path.read_bytes()


def test_colours_of_an_mp4_are_those_that_were_written(tmp_path, ffmpeg) -> None:
    flat = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [252, 255, 164], [87, 16, 110]])
    pixels = np.broadcast_to(flat.astype(np.uint8)[:, None, None], (5, 32, 32, 3)).copy()
    path = write(tmp_path / "a.mp4", [*pixels], [THIRTIETH] * 5, 1 / THIRTIETH)
    assert np.abs(pixels_of(path) - pixels).max() <= 6


def test_an_mp4_of_frames_with_times_of_their_own(tmp_path, ffmpeg) -> None:
    shown = frames(3, (64, 48))
    path = write(tmp_path / "a.mp4", shown, [TENTH, Fraction(1, 2), Fraction(1, 25)])
    distances = [[np.abs(each - one).mean() for one in shown] for each in pixels_of(path)]
    nearest = np.argmin(distances, axis=1).tolist()
    # At 50 in a second.
    assert nearest == [0] * 5 + [1] * 25 + [2] * 2


def test_the_same_frames_give_the_same_bytes(tmp_path, ffmpeg) -> None:
    for suffix in ("webp", "gif", "mp4"):
        paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
        for path in paths:
            write(path, frames(3, (64, 48)), [THIRTIETH] * 3)
        assert paths[0].read_bytes() == paths[1].read_bytes(), suffix


def test_pillow_is_given_no_more_than_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Image.new("RGB", (40, 30))
    monkeypatch.setitem(writing._MOST_BYTES, "gif", 3 * 40 * 30 * 7)
    check_video_size("gif", 6, page)
    for kind in ("webp", "mp4"):
        check_video_size(kind, 10_000, page)
    with pytest.raises(BrokenOffError) as caught:
        check_video_size("gif", 7, page)
    assert str(caught.value) == (
        "A .gif has room for 7 frames of 40x30 pixels, and an .mp4 for any number"
    )


def test_formats_that_cannot_be_written(without_ffmpeg: None) -> None:
    sentences = {
        "walk.avi": "Cannot write walk.avi: a video is one of .webp, .gif, .mp4.",
        "walk.mp4": "An MP4 is written by ffmpeg, which is not on the PATH: install it, or write "
        ".webp or .gif.",
    }
    for name, sentence in sentences.items():
        assert refusal(video_format, Path(name)) == sentence


def test_an_ffmpeg_that_fails_is_explained(tmp_path, ffmpeg) -> None:
    # So many that ffmpeg is gone before all are written.
    many = [np.zeros((480, 640, 3), np.uint8)] * 100
    with pytest.raises(VitscopeError, match=r"^ffmpeg cannot write the video \(.*No such file"):
        write(tmp_path / "none" / "a.mp4", many, [THIRTIETH] * 100)


@pytest.mark.parametrize("per_second", [1000, 100, 50, Fraction(24000, 1001)])
def test_times_are_kept_to_half_a_tick(per_second: Fraction) -> None:
    ticks = Ticks(per_second, 1, 1 << 20)
    durations = [Fraction(1, 20), Fraction(1, 7), Fraction(43, 1000), Fraction(1, 10)] * 30
    given = [ticks.of(each) for each in durations]
    ends = np.cumsum(given)
    exact = np.cumsum([float(each * per_second) for each in durations])
    assert np.abs(ends - exact).max() <= 0.5 + 1e-9
