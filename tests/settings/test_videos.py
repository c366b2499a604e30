"""Videos of a study: what is filled in, what is refused, and what jobs are given."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.helpers.jobs import values_of
from tests.helpers.studies import mini_with
from vitscope.jobs.videos import source_path
from vitscope.studies.loading import load_study
from vitscope.studies.resolving import build_study

GENERATED = {"generated": "shapes32"}


def video(**settings: Any) -> dict[str, Any]:
    return {"walk": {"model": "vit", "source": GENERATED} | settings}


def test_what_a_job_is_given(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path, videos=video(source={"path": "~/walk.mp4"}, block=-1)))
    given = values_of("draw_video", study, video="walk")
    assert (given["settings"], given["label"]) == (asdict(study.videos["walk"]), "ViT")
    size = {"channels": 3, "image_size": 32, "resize": "cover", "interpolation": "bicubic"}
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


def test_records_of_runs_may_be_older_than_videos_and_buildups(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path))
    added = ("videos", "buildups")
    settings = {key: value for key, value in study.settings.items() if key not in added}
    old = build_study("old", study.path, settings)
    assert (old.videos, old.buildups) == ({}, {})
