"""Videos of a study: what is filled in, what is refused, and what jobs are given."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.jobs import values_of
from tests.helpers.studies import mini_with
from vitscope.errors import VitscopeError
from vitscope.jobs.draw_video import source_path
from vitscope.settings.loading import load_study
from vitscope.settings.resolving import build_study

GENERATED = {"generated": "shapes32"}


def video(**settings: Any) -> dict[str, Any]:
    return {"walk": {"model": "vit", "source": GENERATED} | settings}


def refusal(folder: Path, **settings: Any) -> str:
    path = mini_with(folder, videos=video(**settings))
    with pytest.raises(VitscopeError) as caught:
        load_study(path)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"model": "vti"},
            "videos.walk.model: found 'vti', allowed: alternet, convnext, mixer, pit, resnet, "
            "resnet_25, resnet_6, swin, ",
        ),
        (
            {"source": {}},
            "videos.walk.source: found none of these keys, allowed: exactly one of 'path' or "
            "'generated'.",
        ),
        (
            {"source": {"path": "a.gif", **GENERATED}},
            "videos.walk.source: found 'path' and 'generated', allowed: exactly one of 'path' or "
            "'generated'.",
        ),
        (
            {"source": {"path": "{study}.gif"}},
            "videos.walk.source.path: found '{study}.gif', allowed: a path without braces.",
        ),
        (
            {"source": {"generated": "shapes"}},
            "videos.walk.source.generated: found 'shapes', allowed: shapes32. Did you mean "
            "'shapes32'?",
        ),
        ({"show": "heads"}, "videos.walk.show: unknown key, allowed: "),
        ({"shows": "head"}, "videos.walk.shows: found 'head', allowed: heads, rollout."),
        ({"heads": [1, 1]}, "videos.walk.heads: found [1, 1], allowed: entries that differ"),
        ({"query": [1]}, "videos.walk.query: found [1], allowed: at least 2 entries."),
        ({"brightest": 0}, "videos.walk.brightest: found 0, allowed: a number above 0."),
        (
            {"frames_per_second": 1000},
            "videos.walk.frames_per_second: found 1000, allowed: a number up to 240.",
        ),
        (
            {"shows": "rollout", "query": [1, 2]},
            "videos.walk.query: found [1.0, 2.0], which is about `shows: heads`, allowed: nothing "
            "where it shows rollout: remove the key.",
        ),
        (
            {"fusion": "min"},
            "videos.walk.fusion: found 'min', which is about `shows: rollout`, allowed: 'mean' "
            "where it shows heads: remove the key.",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    assert refusal(tmp_path, **settings).startswith(sentence)


def test_what_a_job_is_given(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path, videos=video(source={"path": "~/walk.mp4"}, block=-1)))
    given = values_of("draw_video", study, video="walk")
    assert (given["settings"], given["label"]) == (asdict(study.videos["walk"]), "ViT")
    size = {"channels": 3, "image_size": 32, "resize": 32, "interpolation": "bicubic"}
    assert given["taking"] == size
    settings = given["settings"]
    assert (settings["shows"], settings["block"], settings["frames"]) == ("heads", -1, None)
    assert source_path(study, "walk") == Path.home() / "walk.mp4"
    assert given["facts"] == {
        "Study": "own (small models on generated images)",
        "Frames": "walk.mp4",
        "Checkpoint of ViT": "resources/checkpoints/mini/vit/end.safetensors",
    }
    assert given["listing"] is None


def test_a_folder_of_frames_is_known_by_its_listing(tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    frames.mkdir()
    (frames / "1.png").write_bytes(b"one")
    study = load_study(mini_with(tmp_path, videos=video(source={"path": str(frames)})))
    assert values_of("draw_video", study, video="walk")["listing"]


def test_models_of_videos_are_shown(tmp_path: Path) -> None:
    figures = {"fig9": {"kind": "feature_variance", "models": ["swin"]}}
    study = load_study(mini_with(tmp_path, videos=video(), figures=figures))
    assert study.models_of() == ["swin"]
    assert study.models_shown() == ["swin", "vit"]


def test_records_of_runs_may_be_older_than_videos(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path))
    settings = {key: value for key, value in study.settings.items() if key != "videos"}
    assert build_study("old", study.path, settings).videos == {}
