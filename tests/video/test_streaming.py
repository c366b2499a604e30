import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from PIL import Image

from tests.video.pictures import read_back, subject_of
from vitscope.scopes.looking import Scope
from vitscope.video.frames import Frame, Video
from vitscope.video.showing import show

ROLLOUT = {"shows": "rollout", "fusion": "mean", "frames": None, "lossless": False}
LARGE = (640, 480)


def noisy(count: int) -> Iterator[Frame]:
    """Yield large frames; each has memory of its own."""
    for number in range(count):
        yield Frame(Image.new("RGB", LARGE, (80 * number % 256, 7, 99)), Fraction(1, 30))


def show_frames(scope: Scope, path: Path, found: Iterator[Frame]) -> None:
    video = Video(Fraction(30), (frame for frame in found))
    subject = subject_of(network=scope._network, settings=scope._maker._settings)
    show(subject, lambda: video, path, ROLLOUT, {}, where="video", say=lambda _: None)


def peak_of(call: Callable[[], object]) -> int:
    """Return the most memory that a process of its own takes for a call, in MB."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()

    def run() -> None:
        call()
        theirs.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    process = fork.Process(target=run)
    process.start()
    try:
        assert ours.poll(300), "the call failed"
        return int(ours.recv()) // 1024
    finally:
        process.join()


@pytest.mark.parametrize(
    ("suffix", "few", "many"),
    [
        ("webp", 5, 45),
        pytest.param("webp", 20, 1000, marks=pytest.mark.nightly),
        pytest.param("mp4", 20, 1000, marks=pytest.mark.nightly),
    ],
)
def test_memory_does_not_grow_with_the_frames(scope, tmp_path, ffmpeg, suffix, few, many) -> None:
    """Together these frames have 37 MB and more, and what is drawn of them 13 MB."""
    path = tmp_path / f"a.{suffix}"
    peaks = [peak_of(lambda n=count: show_frames(scope, path, noisy(n))) for count in (few, many)]
    # Beside a WebP, which Pillow holds until it is whole, as it is made and as it is written.
    held = 0 if suffix == "mp4" else 5 * path.stat().st_size / 2**20
    assert peaks[1] - peaks[0] < 8 + held


@pytest.mark.parametrize("suffix", ["webp", "mp4"])
def test_a_kill_leaves_nothing_that_passes_for_a_video(scope, tmp_path, ffmpeg, suffix) -> None:
    path = tmp_path / f"walk.{suffix}"
    written = multiprocessing.get_context("fork").Value("i", 0)

    def endless() -> Iterator[Frame]:
        for frame in noisy(100_000):
            written.value += 1
            yield frame

    process = multiprocessing.get_context("fork").Process(
        target=show_frames, args=(scope, path, endless())
    )
    process.start()
    while written.value < 5:
        time.sleep(0.01)
    process.kill()
    process.join()
    assert {each.name for each in tmp_path.iterdir()} <= {f".walk.{suffix}.partial"}
    # A run that goes on is not disturbed by what is there, nor by an ffmpeg that lives on.
    show_frames(scope, path, noisy(3))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    if suffix == "webp":
        assert len(read_back(path)) == 3
