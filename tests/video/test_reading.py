"""Frames of folders, animated pictures and videos, and what is refused of these."""

import struct
import subprocess
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.video.pictures import Pixels, cut, folder_of, frames, saved
from vitscope.errors import VitscopeError
from vitscope.video.frames import BrokenOffError, Frame, Ticks
from vitscope.video.generated import generated
from vitscope.video.reading import natural, open_source, open_video

TENTH = Fraction(1, 10)


def pixels_of(read: list[Frame]) -> list[Pixels]:
    return [np.asarray(frame.picture) for frame in read]


def broken(path: Path) -> tuple[list[Frame], str]:
    """Return the frames of a video before it breaks off, and what is said of that."""
    read: list[Frame] = []
    with pytest.raises(BrokenOffError) as caught:
        read.extend(open_video(path).frames)  # type: ignore[arg-type]
    return read, str(caught.value)


def refused(path: Path) -> str:
    with pytest.raises(VitscopeError) as caught:
        list(open_video(path).frames)
    assert not isinstance(caught.value, BrokenOffError)
    return str(caught.value)


# Folders.


def test_frames_of_a_folder_follow_their_numbers(tmp_path: Path) -> None:
    shown = frames(12)
    folder = folder_of(tmp_path / "walk", shown)
    (folder / "notes.txt").write_text("no frame")
    (folder / ".hidden.png").write_bytes(b"no frame")
    video = open_video(folder)
    read = list(video.frames)
    np.testing.assert_array_equal(pixels_of(read), shown)
    assert (video.rate, {frame.seconds for frame in read}) == (10, {TENTH})


def test_numbers_in_names_count() -> None:
    names = ["b", "a10b2", "a10b10", "a9", "10", "a", "2"]
    ordered = sorted(map(Path, names), key=natural)
    assert [str(name) for name in ordered] == ["2", "10", "a", "a9", "a10b2", "a10b10", "b"]


def test_another_rate(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "walk", frames(3))
    video = open_source(folder, {}, 29.97)
    assert video.rate == Fraction(2997, 100)
    assert [frame.seconds for frame in video.frames] == [Fraction(100, 2997)] * 3


def test_a_folder_without_pictures(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no frame")
    assert refused(tmp_path) == (
        f"{tmp_path} holds no pictures (.bmp, .jpeg, .jpg, .png, .ppm, .tif, .tiff, .webp): give a "
        "folder of frames."
    )


def test_frames_of_another_size_are_refused_before_any_is_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "walk", frames(11))
    Image.new("RGB", (24, 17)).save(folder / "frame10.png")
    assert refused(folder) == (
        f"{folder}/frame10.png has 24x17 pixels where those before have 24x16: give frames of one "
        "size."
    )


def test_a_frame_that_is_damaged_ends_a_folder(tmp_path: Path) -> None:
    shown = frames(5)
    folder = folder_of(tmp_path / "walk", shown)
    file = folder / "frame4.png"
    file.write_bytes(file.read_bytes()[:90])
    read, sentence = broken(folder)
    np.testing.assert_array_equal(pixels_of(read), shown[:3])
    assert sentence == f"{file} is not a readable image"
    # One of which even the size is lost.
    file.write_bytes(b"")
    assert broken(folder)[1] == sentence


# Animated pictures.


@pytest.mark.parametrize("suffix", ["gif", "webp", "png"])
def test_animated_pictures_are_read_as_pillow_has_them(tmp_path: Path, suffix: str) -> None:
    shown = [pixels // 64 * 64 for pixels in frames(5)]
    durations = [40, 120, 40, 60, 200]
    path = saved(tmp_path / f"a.{suffix}", shown, durations)
    video = open_video(path)
    read = list(video.frames)
    assert [int(1000 * frame.seconds) for frame in read] == durations
    assert video.rate is None
    with Image.open(path) as image:
        assert image.n_frames == 5
        for number, pixels in enumerate(pixels_of(read)):
            image.seek(number)
            np.testing.assert_array_equal(pixels, np.asarray(image.convert("RGB")))
    if suffix != "gif":
        np.testing.assert_array_equal(pixels_of(read), shown)


@pytest.mark.parametrize("lossless", [True, False])
def test_a_webp_of_patches_is_put_together_as_pillow_does(tmp_path: Path, lossless: bool) -> None:
    """Frames that are transparent, and those that change a part of what is there."""
    chance = np.random.default_rng(0)
    shown = [np.zeros((32, 48, 4), np.uint8)]
    for number in range(6):
        pixels = shown[-1].copy() if number % 3 else np.zeros((32, 48, 4), np.uint8)
        top, left = 2 * chance.integers(0, 8, 2)
        pixels[top : top + 11, left : left + 13] = chance.integers(0, 256, (11, 13, 4))
        shown.append(pixels)
    path = tmp_path / "a.webp"
    first, *others = (Image.fromarray(pixels, "RGBA") for pixels in shown)
    first.save(path, save_all=True, append_images=others, duration=50, lossless=lossless)
    places = [flags(path, number) for number in range(7)]
    assert len(set(places)) > 1
    with Image.open(path) as image:
        for number, frame in enumerate(open_video(path).frames):
            image.seek(number)
            seen = image.convert("RGBA")
            visible = np.asarray(seen)[..., 3] == 255
            expected = np.asarray(seen.convert("RGB"))[visible].astype(int)
            assert np.abs(np.asarray(frame.picture)[visible] - expected).max(initial=0) <= 1
    assert number == 6


def flags(path: Path, number: int) -> int:
    """Return what a frame of a WebP says of how it is put on others."""
    data, at = path.read_bytes(), 12
    while True:
        name, size = struct.unpack("<4sI", data[at : at + 8])
        if name == b"ANMF":
            if number == 0:
                return data[at + 8 + 15]
            number -= 1
        at += 8 + size + size % 2


def test_a_gif_that_shows_frames_for_no_time(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.gif", frames(3), 0)
    assert {frame.seconds for frame in open_video(path).frames} == {TENTH}


# The last bytes of a PNG are of no frame.
@pytest.mark.parametrize(
    ("suffix", "share"),
    [*product(("gif", "webp", "png"), (0.3, 0.5, 0.7, 0.9)), ("gif", 0.999), ("webp", 0.999)],
)
def test_an_animated_picture_that_breaks_off(tmp_path: Path, suffix: str, share: float) -> None:
    shown = [pixels // 64 * 64 for pixels in frames(8, (48, 32))]
    whole = saved(tmp_path / f"a.{suffix}", shown)
    expected = pixels_of(list(open_video(whole).frames))
    path = cut(whole, share)
    read, sentence = broken(path)
    assert 0 < len(read) <= 8 * share + 1
    np.testing.assert_array_equal(pixels_of(read), expected[: len(read)])
    assert sentence == f"{path} breaks off in frame {len(read) + 1}"


def test_every_end_of_a_gif_and_of_a_webp_is_missed(tmp_path: Path) -> None:
    """Wherever a file is cut, even between two frames, what is read is right, and it is told."""
    for suffix in ("gif", "webp"):
        shown = [pixels // 128 * 255 for pixels in frames(3, (8, 4))]
        whole = saved(tmp_path / f"a.{suffix}", shown)
        expected, data = pixels_of(list(open_video(whole).frames)), whole.read_bytes()
        path = tmp_path / f"cut.{suffix}"
        told = 0
        for length in range(40, len(data)):
            path.write_bytes(data[:length])
            try:
                read, _ = broken(path)
            except VitscopeError:
                continue
            told += 1
            np.testing.assert_array_equal(pixels_of(read), expected[: len(read)])
        assert told > len(data) // 2


def test_a_still_picture_is_no_video(tmp_path: Path) -> None:
    for suffix in ("png", "webp", "jpg", "bmp"):
        path = tmp_path / f"a.{suffix}"
        Image.fromarray(frames(1)[0]).save(path)
        assert refused(path) == (
            f"{path} is a picture and no video: give a folder of frames, an animated GIF, WebP or "
            "PNG, or a video."
        )


def test_there_is_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "walk.gif"
    assert refused(path) == (
        f"{path} cannot be read (No such file or directory): correct the path, or make it readable."
    )


# Videos.


def film(path: Path, shown: list[Pixels], *options: str, rate: str = "25") -> Path:
    """Write a video by ffmpeg, as others do; nothing of vitscope takes part."""
    height, width, _ = shown[0].shape
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", rate, "-i", "-"]
    data = b"".join(pixels.tobytes() for pixels in shown)
    command = ["ffmpeg", "-v", "error", "-y", *raw, *options, str(path)]
    subprocess.run(command, input=data, check=True)
    return path


LOSSLESS = ("-c:v", "libx264rgb", "-crf", "0", "-pix_fmt", "rgb24")


@pytest.mark.parametrize("rate", ["25", "30000/1001", "12"])
def test_a_video_has_its_frames_and_its_rate(tmp_path, ffmpeg, rate: str) -> None:
    shown = frames(7, (64, 48))
    video = open_video(film(tmp_path / "a b%d.mkv", shown, *LOSSLESS, rate=rate))
    read = list(video.frames)
    np.testing.assert_array_equal(pixels_of(read), shown)
    assert video.rate == Fraction(rate)
    assert {frame.seconds for frame in read} == {1 / Fraction(rate)}


def test_pixels_that_are_wider_than_high(tmp_path, ffmpeg) -> None:
    path = film(tmp_path / "a.mkv", frames(2, (64, 48)), "-vf", "setsar=2", "-c:v", "ffv1")
    assert {frame.picture.size for frame in open_video(path).frames} == {(128, 48)}


def test_a_video_whose_frames_change_their_size(tmp_path, ffmpeg) -> None:
    parts = [
        film(tmp_path / f"{width}.ts", frames(5, (width, 48)), "-c:v", "mpeg2video")
        for width in (64, 96)
    ]
    path = tmp_path / "both.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    sentence = refused(path)
    assert sentence.startswith(f"{path}: frame ")
    assert sentence.endswith(
        " has 96x48 pixels where those before have 64x48: give frames of one size."
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.avi", ("-c:v", "mjpeg", "-q:v", "2")),
        ("a.mkv", ("-c:v", "libx264", "-g", "1")),
        ("a.mp4", ("-c:v", "libx264", "-g", "1", "-movflags", "+faststart")),
        ("a.webm", ("-c:v", "libvpx", "-b:v", "1M")),
    ],
)
def test_a_video_that_breaks_off(tmp_path, ffmpeg, name, options) -> None:
    whole = film(tmp_path / name, frames(40, (64, 48)), *options)
    expected = pixels_of(list(open_video(whole).frames))
    assert len(expected) == 40
    path = cut(whole, 0.6)
    read, sentence = broken(path)
    assert 5 < len(read) < 40
    # The last may be what there was of it.
    np.testing.assert_array_equal(pixels_of(read)[:-1], expected[: len(read) - 1])
    assert sentence.startswith(f"{path} breaks off behind frame {len(read)} (ffmpeg says: ")


def test_what_is_no_video(tmp_path, ffmpeg) -> None:
    text = tmp_path / "notes.mp4"
    text.write_text("no video")
    assert refused(text).startswith(f"{text} is no video that ffmpeg reads (")
    # Nor is a list of files that lie elsewhere, which ffmpeg would follow.
    other = film(tmp_path / "other.mkv", frames(2), *LOSSLESS)
    playlist = tmp_path / "list.mp4"
    playlist.write_text(f"ffconcat version 1.0\nfile {other}\n")
    assert "is no video that ffmpeg reads" in refused(playlist)
    playlist.write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{other}\n")
    assert "is no video that ffmpeg reads" in refused(playlist)


def test_a_sound_is_no_video(tmp_path, ffmpeg) -> None:
    path = tmp_path / "a.mp4"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine", "-t", "1", str(path)], check=True
    )
    assert refused(path).startswith(f"{path} is no video that ffmpeg reads (")


def test_without_ffmpeg(tmp_path: Path, without_ffmpeg: None) -> None:
    path = tmp_path / "walk.mp4"
    path.write_bytes(b"\0\0\0\x18ftypmp42")
    assert refused(path) == (
        f"{path} is no folder and no animated GIF, WebP or PNG, and videos are read by ffmpeg, "
        "which is not on the PATH: install it, or give one of these."
    )


def test_ffmpeg_ends_when_no_more_frames_are_wanted(tmp_path, ffmpeg) -> None:
    path = film(tmp_path / "a.mkv", frames(60, (320, 240)), *LOSSLESS)
    video = open_video(path)
    next(video.frames)
    process = video.frames.gi_frame.f_locals["process"]  # type: ignore[attr-defined]
    assert process.poll() is None
    video.frames.close()
    assert process.poll() is not None


# What is made here.


def test_the_generated_video_is_the_same_shape_in_other_places() -> None:
    read = pixels_of(list(generated("shapes32").frames))
    assert [pixels.shape for pixels in read] == [(32, 32, 3)] * 12
    assert len({pixels.tobytes() for pixels in read}) == 12
    again = pixels_of(list(generated("shapes32").frames))
    np.testing.assert_array_equal(read, again)
    with pytest.raises(VitscopeError, match="There is no generated video 'shapes'"):
        generated("shapes")


@pytest.mark.parametrize("per_second", [1000, 100, 50, Fraction(24000, 1001)])
def test_times_are_kept_to_half_a_tick(per_second: Fraction) -> None:
    ticks = Ticks(per_second, 1, 1 << 20)
    durations = [Fraction(1, 20), Fraction(1, 7), Fraction(43, 1000), Fraction(1, 10)] * 30
    given = [ticks.of(each) for each in durations]
    ends = np.cumsum(given)
    exact = np.cumsum([float(each * per_second) for each in durations])
    assert np.abs(ends - exact).max() <= 0.5 + 1e-9
