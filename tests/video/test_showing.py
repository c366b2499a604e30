import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

import vitscope
from tests.helpers.kinds import timm
from tests.helpers.refusals import refusal
from tests.scopes.networks import Convolutions, looked_at, network
from tests.video.pictures import cut, folder_of, frames, read_back, save_frames, subject_of
from vitscope.scopes.scope import Scope
from vitscope.video.frames import Frame, VideoFrames
from vitscope.video.sheet import Scale, Sheet, map_colors
from vitscope.video.showing import Painter, show
from vitscope.video.views import VIEWS, RolloutView

# The colours of maps, each as a number; no two are the same.
CODES = np.asarray(map_colors(np.linspace(0, 1, 256)[None]))[0].astype(int) @ [1, 256, 65536]


def panels_of(page: npt.NDArray[np.uint8], size: int, count: int) -> list[npt.NDArray[np.uint8]]:
    sheet = Sheet(size, [""] * count, "", Scale("", "", ""))
    assert page.shape[1::-1] == sheet.size
    corners = [sheet.corner(number) for number in range(count)]
    return [page[y : y + sheet.panel[0], x : x + sheet.panel[0]] for x, y in corners]


def values_of(panel: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the values from 0 to 1 that the colours of a map stand for."""
    order = np.argsort(CODES)
    codes = panel.astype(int) @ [1, 256, 65536]
    found = order[np.searchsorted(CODES, codes, sorter=order).clip(max=255)]
    np.testing.assert_array_equal(CODES[found], codes)
    return found / 255


def enlarged(weights: Any, grid: tuple[int, int], side: int) -> npt.NDArray[np.float64]:
    plane = torch.tensor(np.asarray(weights, np.float64)).reshape(1, 1, *grid)
    large = torch.nn.functional.interpolate(plane, (side, side), mode="bilinear")
    return large[0, 0].numpy()


# A level of 256 colours; and a bit for what is rounded on the way.
LEVEL = 1 / 256 + 1e-4


@pytest.fixture(scope="module")
def with_class_token() -> Scope:
    """A ViT with a class token, at another size than its images had."""
    torch.manual_seed(0)
    settings = {"patch_size": 8, "embed_dim": 24, "depth": 3, "num_heads": 3}
    model = timm("vit_tiny_patch16_224", img_size=32, **settings)
    with torch.no_grad():
        for block in model.blocks:
            block.attn.qkv.weight.mul_(12)
    images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    return looked_at(model, images, name="classed")


@pytest.fixture(params=["scope", "with_class_token"])
def looked(request: pytest.FixtureRequest) -> Scope:
    return request.getfixturevalue(request.param)


def images_of(scope: Scope) -> npt.NDArray[np.uint8]:
    """Return the images of a scope, (N, H, W, C)."""
    return scope._maker.images.images(slice(None)).transpose(0, 2, 3, 1)


def again(scope: Scope, count: int | None = None, **analysis: Any) -> Scope:
    """Look again at a network and its first images, with other settings."""
    images = images_of(scope)[:count]
    return vitscope.look(scope._network, images, mean=0.5, std=0.25, analysis=analysis)


def still_of(scope: Scope, folder: Path) -> Path:
    """Return a folder with the first image of a scope as the only frame."""
    return folder_of(folder / "still", [images_of(scope)[0]])


def shown(
    scope: Scope, folder: Path, count: int, *shows: str, **settings: Any
) -> list[list[npt.NDArray[np.uint8]]]:
    """Return the panels of each page of a video of the frames in a folder."""
    path = scope.video(folder, folder.with_suffix(".webp"), *shows, lossless=True, **settings)
    size = images_of(scope).shape[1]
    return [panels_of(page, size, count) for page in read_back(path)]


def test_maps_of_heads_are_those_of_the_table(looked: Scope, tmp_path: Path) -> None:
    table = looked.attention_maps
    heads = table[(table["shows"] == "heads") & (table["image"] == table["image"].min())]
    ((video, *maps),) = shown(looked, still_of(looked, tmp_path), 1 + len(heads))
    picture = images_of(looked)[0]
    brightest = max(map(max, heads["weights"]))
    for (_, row), panel in zip(heads.iterrows(), maps, strict=True):
        expected = enlarged(row["weights"], (row["height"], row["width"]), len(panel)) / brightest
        assert np.abs(values_of(panel) - expected).max() <= LEVEL
    times = len(video) // len(picture)
    np.testing.assert_array_equal(video[::times, ::times], picture)


@pytest.mark.parametrize(("looked", "fusion"), [("scope", "mean"), ("with_class_token", "max")])
def test_the_rollout_is_that_of_the_table(request, tmp_path, looked: str, fusion: str) -> None:
    looked = request.getfixturevalue(looked)
    still = still_of(looked, tmp_path)
    ((video, rollout, over),) = shown(looked, still, 3, "rollout", fusion=fusion)
    own = again(looked, attention_rollout={"heads": fusion, "images": 1})
    (row,) = own.attention_rollout.to_dict("records")
    expected = enlarged(row["rollout"], (row["height"], row["width"]), len(rollout))
    assert np.abs(values_of(rollout) - expected).max() <= LEVEL
    mixed = 0.55 * rollout.astype(float) + 0.45 * video
    assert np.abs(over - mixed).max() <= 1


def test_the_colours_of_tokens_are_those_of_the_components_in_the_table(
    looked: Scope, tmp_path: Path
) -> None:
    images = images_of(looked)[:4]
    pages = shown(looked, folder_of(tmp_path / "walk", [*images]), 3, "components")
    table = again(looked, 4, token_pca={"images": 4}).token_pca
    components = np.stack([np.reshape(each, (-1, 3)) for each in table["components"]])
    low, high = np.nanmin(components, axis=(0, 1)), np.nanmax(components, axis=(0, 1))
    for page, (_, row), values in zip(pages, table.iterrows(), components, strict=True):
        video, tokens, over = page
        colours = 255 * (values - low) / (high - low)
        colours[np.isnan(colours[:, 0])] = 255
        colours[np.isnan(row["first"])] = 153
        grid = (row["height"], row["width"])
        step = len(tokens) // row["height"]
        middles = tokens[step // 2 :: step, step // 2 :: step]
        assert np.abs(middles - colours.reshape(*grid, 3)).max() <= 0.5
        # Over the video the background is as it was.
        background = (colours == 255).all(-1).reshape(grid)
        assert background.any()
        there = background.repeat(step, 0).repeat(step, 1)
        np.testing.assert_array_equal(over[there], video[there])
        mixed = 0.55 * tokens[~there].astype(float) + 0.45 * video[~there]
        assert np.abs(over[~there] - mixed).max() <= 1


@pytest.mark.parametrize(
    ("frames", "kept"), [(1, [0]), (4, range(4)), (5, [0, 2, 4]), (9, [0, 4, 8])]
)
def test_components_are_of_frames_spread_over_the_video(
    frames: int, kept: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Eyes(RolloutView):
        LOOKS_AHEAD = 4

        def __init__(self) -> None:
            pass

        def look_ahead(self, images: Sequence[torch.Tensor]) -> None:
            seen.extend(round(float(image.mean())) for image in images)

    settings = {"mean": [0.0] * 3, "std": [1 / 255] * 3}
    subject = subject_of(network=torch.nn.Identity(), settings=settings)
    monkeypatch.setitem(VIEWS, "components", lambda *_: Eyes())
    painter = Painter(subject, {"shows": "components"}, "video")
    pictures = (Image.new("RGB", (16, 16), (number,) * 3) for number in range(frames))
    painter.look_ahead(Frame(picture, Fraction(1)) for picture in pictures)
    assert seen == [*kept]


def test_chosen_heads_of_a_block_and_a_query(with_class_token: Scope, tmp_path: Path) -> None:
    still, query = still_of(with_class_token, tmp_path), [13.0, 27.0]
    asked = {"block": 0, "query": query, "heads": [2, 0], "brightest": 4.0}
    ((video, *maps),) = shown(with_class_token, still, 3, **asked)
    own = again(with_class_token, 1, attention_maps={"block": 0, "query": query, "images": 1})
    table = own.attention_maps
    heads = table[table["shows"] == "heads"].set_index("head")
    for head, panel in zip((2, 0), maps, strict=True):
        weights = enlarged(heads["weights"][head], (4, 4), len(panel))
        assert np.abs(values_of(panel) - np.clip(weights / 0.04, 0, 1)).max() <= LEVEL
    # The query that is meant is in the middle of its patch.
    marked = (video[2::5, 2::5] != images_of(with_class_token)[0]).any(-1)
    rows, columns = np.nonzero(marked)
    assert (rows.mean(), columns.mean()) == (pytest.approx(11.5, abs=1), pytest.approx(27.5, abs=1))


def test_the_first_frame_fixes_the_scale_of_all(scope: Scope, tmp_path: Path) -> None:
    still = folder_of(tmp_path / "still", [*images_of(scope)[:2]])
    both = scope.video(still, tmp_path / "both.webp", lossless=True)
    (still / "frame1.png").unlink()
    alone = scope.video(still, tmp_path / "alone.webp", lossless=True)
    pages = read_back(both)
    of_both, of_alone = (panels_of(page, 16, 3)[1:] for page in (pages[1], read_back(alone)[0]))
    table = scope.attention_maps
    heads = table[table["shows"] == "heads"]
    largest = heads.groupby("image")["weights"].agg(lambda rows: max(map(max, rows)))
    factor = largest[1] / largest[0]
    for one, other in zip(of_both, of_alone, strict=True):
        expected = np.clip(values_of(other) * factor, 0, 1)
        assert np.abs(values_of(one) - expected).max() <= 2 * LEVEL * max(1, factor)
    # What is written beside the maps is the same in all frames.
    assert (pages[0][-20:] == pages[1][-20:]).all()


def test_frames_are_cut_as_the_images_of_a_folder_are(scope: Scope, tmp_path: Path) -> None:
    """Shorter side to the size of the network, centre: what `look` makes of a folder."""
    wide = frames(1, (60, 40))
    folder = folder_of(tmp_path / "wide", wide)
    ((video, *_),) = shown(scope, folder, 3)
    own = vitscope.look(network(), folder, mean=0.5, std=0.25, image_size=16)
    np.testing.assert_array_equal(video[::10, ::10], images_of(own)[0])


@pytest.fixture
def walk(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "walk", frames(2, (16, 16)))


def refused(scope: Scope, walk: Path, *given: str, **settings: Any) -> str:
    """Return the sentence of a video that cannot be made, and leaves nothing."""
    before = sorted(walk.parent.rglob("*"))
    sentence = refusal(scope.video, walk, walk.with_name("a.webp"), *given, **settings)
    assert sorted(walk.parent.rglob("*")) == before
    return sentence


@pytest.mark.parametrize("suffix", ["webp", "gif"])
def test_a_video_that_breaks_off_leaves_what_was_before(scope, tmp_path, suffix) -> None:
    whole = save_frames(tmp_path / "a.gif", frames(6, (32, 24)), 70)
    path, out = cut(whole, 0.6), tmp_path / "out" / f"walk.{suffix}"
    expected = read_back(scope.video(whole, tmp_path / f"whole.{suffix}"))
    sentence = refusal(scope.video, path, out)
    incomplete = out.with_name(f"walk.incomplete.{suffix}")
    assert list(out.parent.iterdir()) == [incomplete]
    kept = read_back(incomplete)
    assert 0 < len(kept) < 6
    np.testing.assert_array_equal(kept, expected[: len(kept)])
    assert sentence == (
        f"{path} breaks off in frame {len(kept) + 1}: the {len(kept)} frames before that are in "
        f"{incomplete}; repair the video, or ask for no more `frames` than these."
    )
    # As is asked for; and the file of another day is gone.
    scope.video(path, out, frames=len(kept))
    assert list(out.parent.iterdir()) == [out]


def test_videos_that_cannot_be_made(scope: Scope, walk: Path) -> None:
    """Without attention, without knowing how pixels are taken, and without a first frame."""
    convolutions = looked_at(network(Convolutions), name="conv")
    for shows in ("heads", "rollout"):
        sentence = refused(convolutions, walk, shows)
        assert sentence.startswith("models.conv: no attention was found: nowhere is a softmax")
    sentence = refused(vitscope.look(network(), torch.randn(4, 3, 16, 16)), walk)
    assert sentence.endswith("look at images of pixels, and give mean= and std=.")
    (walk / "frame1.png").write_bytes(b"damaged")
    said = f"{walk}/frame1.png is not a readable image: give another video."
    assert refused(scope, walk) == said


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"block": 2},
            "video.block: found 2, allowed for models.mine, which has 2 attentions: -2 to 1, or a "
            "name.",
        ),
        (
            {"block": "blocks.7"},
            "video.block: found 'blocks.7', and models.mine has no attention there; it has "
            "blocks.0.attention, blocks.1.attention.",
        ),
        (
            {"heads": [0, 2]},
            "video.heads: found 2, allowed for 'blocks.1.attention' of models.mine: 0 to 1.",
        ),
        (
            {"query": [3.0, 17.0]},
            "video: found the query [3.0, 17.0], and images of models.mine have 16 x 16 pixels.",
        ),
        ({"frames": 0}, "video: frames: found 0, allowed: a number from 1."),
        (
            {"fusion": "max"},
            "video.fusion: found 'max', which is about `shows: rollout`, allowed: 'mean' where it "
            "shows heads: remove the key.",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(scope, walk, settings, sentence) -> None:
    assert refused(scope, walk, **settings).startswith(sentence.removesuffix("."))


ROLLOUT = {"shows": "rollout", "fusion": "mean", "frames": None, "lossless": False}
LARGE = (640, 480)


def noisy(count: int) -> Iterator[Frame]:
    """Yield large frames; each has memory of its own."""
    for number in range(count):
        yield Frame(Image.new("RGB", LARGE, (80 * number % 256, 7, 99)), Fraction(1, 30))


def show_frames(scope: Scope, path: Path, found: Iterator[Frame]) -> None:
    video = VideoFrames(Fraction(30), (frame for frame in found))
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
