import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.video.pictures import Pixels, cut, folder_of, frames, save_frames
from vitscope.errors import VitscopeError
from vitscope.files.natural import natural_order
from vitscope.video.frames import (
    BrokenOffError,
    Frame,
    open_study_video_frames,
    open_video_frames,
)

TENTH = Fraction(1, 10)


def pixels_of(read: list[Frame]) -> list[Pixels]:
    return [np.asarray(frame.picture) for frame in read]


def broken(path: Path) -> tuple[list[Frame], str]:
    """Return the frames of a video before it breaks off, and the sentence."""
    read: list[Frame] = []
    with pytest.raises(BrokenOffError) as caught:
        read.extend(open_video_frames(path).frames)  # type: ignore[arg-type]
    return read, str(caught.value)


def refused(path: Path) -> str:
    with pytest.raises(VitscopeError) as caught:
        list(open_video_frames(path).frames)
    assert not isinstance(caught.value, BrokenOffError)
    return str(caught.value)


def test_frames_of_a_folder_follow_their_numbers(tmp_path: Path) -> None:
    shown = frames(12)
    folder = folder_of(tmp_path / "walk", shown)
    (folder / "notes.txt").write_text("no frame")
    (folder / ".hidden.png").write_bytes(b"no frame")
    video = open_video_frames(folder)
    read = list(video.frames)
    np.testing.assert_array_equal(pixels_of(read), shown)
    assert (video.rate, {frame.seconds for frame in read}) == (10, {TENTH})
    faster = open_study_video_frames(folder, 29.97)
    assert faster.rate == Fraction(2997, 100)
    assert {frame.seconds for frame in faster.frames} == {Fraction(100, 2997)}


def test_numbers_in_names_count() -> None:
    names = ["b", "a10b2", "a10b10", "a9", "10", "a", "2"]
    ordered = sorted(names, key=natural_order)
    assert [str(name) for name in ordered] == ["2", "10", "a", "a9", "a10b2", "a10b10", "b"]


def test_a_frame_that_is_damaged_ends_a_folder(tmp_path: Path) -> None:
    shown = frames(5)
    folder = folder_of(tmp_path / "walk", shown)
    file = folder / "frame4.png"
    file.write_bytes(file.read_bytes()[:90])
    read, sentence = broken(folder)
    np.testing.assert_array_equal(pixels_of(read), shown[:3])
    assert sentence == f"{file} is not a readable image"


@pytest.mark.parametrize("suffix", ["gif", "webp", "png"])
def test_animated_pictures_are_read_whole_or_break_off(tmp_path: Path, suffix: str) -> None:
    shown = [pixels // 64 * 64 for pixels in frames(8, (48, 32))]
    durations = [40, 120, 40, 60, 200, 40, 40, 50]
    path = save_frames(tmp_path / f"a.{suffix}", shown, durations)
    video = open_video_frames(path)
    read = list(video.frames)
    assert [int(1000 * frame.seconds) for frame in read] == durations
    assert video.rate is None
    whole = pixels_of(read)
    if suffix != "gif":
        np.testing.assert_array_equal(whole, shown)
    for share in (0.3, 0.5, 0.7, 0.9):
        half = cut(path, share)
        read, sentence = broken(half)
        # Of a WebP that was cut, Pillow reads nothing.
        assert int(suffix != "webp") <= len(read) <= 8 * share + 1
        np.testing.assert_array_equal(pixels_of(read), whole[: len(read)])
        assert sentence == f"{half} breaks off in frame {len(read) + 1}"


def test_the_end_of_a_gif_is_missed_wherever_it_is_cut(tmp_path: Path) -> None:
    path = save_frames(tmp_path / "a.gif", [pixels // 128 * 255 for pixels in frames(3, (8, 4))])
    whole, data = pixels_of(list(open_video_frames(path).frames)), path.read_bytes()
    for length in range(data.rindex(b"\x21\xf9"), len(data)):
        path.write_bytes(data[:length])
        read, _ = broken(path)
        np.testing.assert_array_equal(pixels_of(read), whole[: len(read)])
    path.write_bytes(data + b"\0\0")
    assert len(list(open_video_frames(path).frames)) == 3
    # Frames that are shown for no time.
    save_frames(path, frames(3), 0)
    assert {frame.seconds for frame in open_video_frames(path).frames} == {TENTH}


def film(path: Path, shown: list[Pixels], *options: str, rate: str = "25") -> Path:
    """Write a video by ffmpeg, as others do; nothing of vitscope takes part."""
    height, width, _ = shown[0].shape
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", rate, "-i", "-"]
    data = b"".join(pixels.tobytes() for pixels in shown)
    command = ["ffmpeg", "-v", "error", "-y", *raw, *options, str(path)]
    subprocess.run(command, input=data, check=True)
    return path


LOSSLESS = ("-c:v", "libx264rgb", "-crf", "0", "-pix_fmt", "rgb24")


@pytest.mark.parametrize("rate", ["25", "30000/1001"])
def test_a_video_has_its_frames_and_its_rate(tmp_path, ffmpeg, rate: str) -> None:
    shown = frames(7, (64, 48))
    video = open_video_frames(film(tmp_path / "a b%d.mkv", shown, *LOSSLESS, rate=rate))
    read = list(video.frames)
    np.testing.assert_array_equal(pixels_of(read), shown)
    assert video.rate == Fraction(rate)
    assert {frame.seconds for frame in read} == {1 / Fraction(rate)}


def test_pixels_that_are_wider_than_high(tmp_path, ffmpeg) -> None:
    path = film(tmp_path / "a.mkv", frames(2, (64, 48)), "-vf", "setsar=2", "-c:v", "ffv1")
    assert {frame.picture.size for frame in open_video_frames(path).frames} == {(128, 48)}


def test_frames_that_change_their_size_have_that_of_the_first(tmp_path, ffmpeg) -> None:
    path = tmp_path / "both.ts"
    with path.open("wb") as both:
        for width in (64, 96):
            part = film(tmp_path / "part.ts", frames(5, (width, 48)), "-c:v", "mpeg2video")
            both.write(part.read_bytes())
    read = list(open_video_frames(path).frames)
    assert len(read) >= 9
    assert {frame.picture.size for frame in read} == {(64, 48)}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.avi", ("-c:v", "mjpeg", "-q:v", "2")),
        ("a.mp4", ("-c:v", "libx264", "-g", "1", "-movflags", "+faststart")),
        ("a.webm", ("-c:v", "libvpx", "-b:v", "1M")),
    ],
)
def test_a_video_that_breaks_off(tmp_path, ffmpeg, name, options) -> None:
    whole = film(tmp_path / name, frames(40, (64, 48)), *options)
    expected = pixels_of(list(open_video_frames(whole).frames))
    assert len(expected) == 40
    path = cut(whole, 0.6)
    read, sentence = broken(path)
    assert 5 < len(read) < 40
    # The last may be what there was of it.
    np.testing.assert_array_equal(pixels_of(read)[:-1], expected[: len(read) - 1])
    assert sentence.startswith(f"{path} breaks off behind frame {len(read)} (ffmpeg says: ")


def test_ffmpeg_ends_when_no_more_frames_are_wanted(tmp_path, ffmpeg) -> None:
    video = open_video_frames(film(tmp_path / "a.mkv", frames(60, (320, 240)), *LOSSLESS))
    next(video.frames)
    process = video.frames.gi_frame.f_locals["process"]  # type: ignore[attr-defined]
    assert process.poll() is None
    video.frames.close()
    assert process.poll() is not None


@pytest.mark.parametrize("suffix", ["png", "webp", "jpg", "bmp"])
def test_a_still_picture_is_no_video(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(frames(1)[0]).save(path)
    assert refused(path) == (
        f"{path} is a picture and no video: give a folder of frames, an animated GIF, WebP or "
        "PNG, or a video."
    )


def test_a_path_without_frames(tmp_path: Path, without_ffmpeg: None) -> None:
    (tmp_path / "notes.txt").write_text("no frame")
    film = tmp_path / "walk.mp4"
    film.write_bytes(b"\0\0\0\x18ftypmp42")
    missing = tmp_path / "walk.gif"
    sentences = {
        tmp_path: "{} holds no pictures (.bmp, .gif, .jpeg, .jpg, .png, .ppm, .tif, .tiff, .webp): "
        "give a folder of frames.",
        missing: "{} cannot be read (No such file or directory): correct the path, or make it "
        "readable.",
        film: "{} is no folder and no animated GIF, WebP or PNG, and videos are read by ffmpeg, "
        "which is not on the PATH: install it, or give one of these.",
    }
    for path, sentence in sentences.items():
        assert refused(path) == sentence.format(path)


def test_what_is_no_video(tmp_path, ffmpeg) -> None:
    """Text, a sound, and lists of files that lie elsewhere, which ffmpeg would follow."""
    other = film(tmp_path / "other.mkv", frames(2), *LOSSLESS)
    sound = tmp_path / "sound.mp4"
    tone = ["-f", "lavfi", "-i", "sine", "-t", "1"]
    subprocess.run(["ffmpeg", "-v", "error", *tone, str(sound)], check=True)
    path = tmp_path / "walk.mp4"
    for data in (
        b"no video",
        sound.read_bytes(),
        f"ffconcat version 1.0\nfile {other}\n".encode(),
        f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{other}\n".encode(),
    ):
        path.write_bytes(data)
        assert refused(path).startswith(f"{path} is no video that ffmpeg reads (")


def test_the_generated_video_is_the_same_shape_in_other_places() -> None:
    read = pixels_of(list(open_study_video_frames(None, None).frames))
    assert [pixels.shape for pixels in read] == [(32, 32, 3)] * 12
    assert len({pixels.tobytes() for pixels in read}) == 12
    np.testing.assert_array_equal(read, pixels_of(list(open_study_video_frames(None, None).frames)))
