from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.jobs import values_of
from tests.helpers.refusals import refusal
from tests.helpers.studies import mini_with
from vitscope.buildup.rule import Plan, plan_of
from vitscope.jobs import buildups
from vitscope.jobs.describing import describe_member, title_of_figure
from vitscope.jobs.videos import source_path
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.studies.resolving import resolve_study

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
CIFAR = load_study(BUNDLED_STUDIES / "cifar100.yaml")


def by_epoch(models: list[str], **settings: Any) -> dict[str, Any]:
    return {"late": {"kind": "variance_by_epoch", "models": models} | settings}


def test_a_figure_by_epoch_shows_models_from_first_to_last() -> None:
    shown = CIFAR.figures["fig9_by_epoch"].models
    names = [f"vit@epoch_{n}" for n in (0, 1, 3, 10, 30)]
    longer = [f"vit_authors@epoch_{n}" for n in (10, 30, 100)]
    assert shown == [*names, "vit", *longer, "vit_authors"]
    members = [describe_member(CIFAR, name) for name in shown]
    assert [member["epoch"] for member in members] == [0, 1, 3, 10, 30, 86, 10, 30, 100, 300]
    assert members[1]["label"] == "ViT, epoch 1"
    assert members[5]["label"] == "ViT"


def test_a_value_by_depth_can_be_shown_by_epoch(tmp_path: Path) -> None:
    figure = {"kind": "token_similarity", "models": ["vit"], "by_epoch": True}
    plain = {"kind": "token_similarity", "models": ["vit"]}
    study = load_study(mini_with(tmp_path, figures={"late": figure, "plain": plain}))
    moments = ["vit@init", "vit@warmup", "vit"]
    assert study.figures["late"].models == moments
    assert {*study.models_of("token_similarity")} == {*moments}
    assert study.figures["plain"].models == ["vit"]
    assert values_of("draw_figure", study, figure="late")["values"]["by_epoch"] is True
    # Claims are counted on the trained network alone.
    counted = values_of("count_claims", study)["figures"]
    assert {name: each["models"] for name, each in counted.items()} == {"plain": ["vit"]}
    assert title_of_figure(study, "late") == "Similarity of tokens by depth, by epoch"


@pytest.mark.parametrize(
    ("key", "value"), [("change", True), ("together", True), ("published", {"file": "fig9.csv"})]
)
def test_what_no_figure_by_epoch_shows_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    figure = {"kind": "feature_variance", "models": ["vit"], "by_epoch": True, key: value}
    path = mini_with(tmp_path, figures={"late": figure})
    assert refusal(load_study, path) == (
        f"{path}: figures.late.by_epoch: a figure by epoch shows nothing by its key '{key}': "
        f"remove one of the two."
    )


def test_such_a_model_is_its_snapshot_and_the_rest_is_as_it_was() -> None:
    model, moment = CIFAR.models["vit"], CIFAR.models["vit@epoch_3"]
    assert moment.checkpoint == model.snapshots["epoch_3"]
    assert (moment.arch, moment.data, moment.training) == (model.arch, model.data, model.training)
    assert (moment.snapshots, moment.history) == ({}, None)
    assert CIFAR.network("vit@epoch_3") == CIFAR.network("vit")
    written = yaml.safe_load((BUNDLED_STUDIES / "cifar100.yaml").read_text(encoding="utf-8"))
    assert CIFAR.own_models == [*written["models"]]


def test_the_moments_that_a_figure_names_are_shown_in_order_of_epochs(tmp_path: Path) -> None:
    figures = by_epoch(["vit"], snapshots=["end", "init"])
    study = load_study(mini_with(tmp_path, figures=figures))
    assert study.figures["late"].models == ["vit@init", "vit"]
    assert sorted(study.own_models) == sorted(MINI.own_models)


@pytest.mark.parametrize(
    ("figure", "sentence"),
    [
        (
            {"models": ["pit"]},
            "figures.late: models.pit has no snapshot of which it is known after how many epochs "
            "it was taken: name some epoch_N in its `snapshots`, for a figure by epoch.",
        ),
        (
            {"models": ["vti"]},
            f"figures.late.models: found 'vti', allowed: {', '.join(sorted(MINI.own_models))}. Did "
            "you mean 'vit'?",
        ),
        (
            {"models": ["vit"], "snapshots": ["init", "epoch_3"]},
            "figures.late.snapshots: found 'epoch_3', allowed: end, init, warmup.",
        ),
    ],
)
def test_what_cannot_be_shown_by_epoch_is_refused(
    tmp_path: Path, figure: dict[str, Any], sentence: str
) -> None:
    path = mini_with(tmp_path, figures=by_epoch(**figure))
    assert refusal(load_study, path) == f"{path}: {sentence}"


def test_other_kinds_name_those_that_show_snapshots(tmp_path: Path) -> None:
    figure = {"late": {"kind": "feature_variance", "models": ["vit"], "snapshots": ["init"]}}
    assert "'variance_by_epoch'" in refusal(load_study, mini_with(tmp_path, figures=figure))


def test_models_that_differ_in_their_seed_alone_are_repeats(tmp_path: Path) -> None:
    vit = {"family": "vit", "data": "shapes32", "checkpoint": {"path": "a.safetensors"}}
    arch = {"patch_size": 4, "embed_dim": 8, "depth": 2, "num_heads": 2}
    trainings = {name: {"seed": seed} for seed, name in enumerate(("one", "two", "three"), 1)}
    trainings["again"] = {"seed": 2, "epochs": 5}
    models = {name: vit | {"arch": arch, "training": each} for name, each in trainings.items()}
    figures = {"f": {"kind": "feature_variance", "models": [*trainings]}}
    study = load_study(mini_with(tmp_path, models=models, figures=figures, videos={}, buildups={}))
    assert study.repeats == [["one", "three", "two"]]


def with_video(folder: Path, source: dict[str, str], **others: Any) -> Study:
    walk = {"model": "vit", "source": source, "block": -1}
    return load_study(mini_with(folder, videos={"walk": walk}, **others))


def test_what_a_job_of_a_buildup_is_given(tmp_path: Path) -> None:
    grown = {"baseline": "resnet", "training": {"epochs": 3}, "steps": 2}
    study = load_study(mini_with(tmp_path, buildups={"grown": grown}))
    given = buildups.settings_of_buildup(study, "grown")
    assert given["baseline"] == study.network("resnet") | {
        "family": "alternet",
        "arch": {"block": "bottleneck", "blocks": [2, 3, 4, 2], "width": 8}
        | {"heads": [3, 6, 12, 24], "head_dim": 64, "window": 4},
    }
    assert plan_of(given) == Plan((2, 3, 4, 2), 1, 2)
    # The recipe of the baseline, which has 8 epochs where the study has 16, and the changes.
    assert asdict(study.recipe_of_steps("grown")) == asdict(study.recipe("resnet")) | {"epochs": 3}
    assert buildups.is_trained(study, "grown")
    assert buildups.bundled_buildup_steps(study, "grown") == []
    assert values_of("draw_buildup", study, buildup="grown")["facts"] == {
        "Study": "own (small models on generated images)",
        "Data": "shapes32, test images",
        "Baseline": "ResNet, as an AlterNet without attention",
        "Training": "3 epochs of all training images, seed 0",
        "Weights": "trained by this workflow",
    }


def test_what_a_job_of_a_video_is_given(tmp_path: Path) -> None:
    study = with_video(tmp_path, {"path": "~/walk.mp4"})
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
    study = with_video(tmp_path, {"path": str(frames)})
    assert values_of("draw_video", study, video="walk")["listing"]


def test_models_of_videos_are_shown(tmp_path: Path) -> None:
    figures = {"fig9": {"kind": "feature_variance", "models": ["swin"]}}
    study = with_video(tmp_path, {"generated": "shapes32"}, figures=figures)
    assert study.models_of() == ["swin"]
    assert study.models_shown() == ["swin", "vit"]


def test_records_of_runs_may_lack_sections_and_have_keys_that_are_gone(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path))
    added = ("videos", "buildups")
    settings = {key: value for key, value in study.settings.items() if key not in added}
    settings["models"] = {n: each | {"gone": 1} for n, each in settings["models"].items()}
    old = resolve_study("old", study.path, settings)
    assert (old.videos, old.buildups) == ({}, {})
    assert old.models["resnet"] == study.models["resnet"]
