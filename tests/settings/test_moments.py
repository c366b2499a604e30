"""Figures by epoch show each snapshot as a model of its own, which the study has besides."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.studies import mini_with
from vitscope.errors import VitscopeError
from vitscope.jobs.describing import members as members_of
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
CIFAR = load_study(BUNDLED_STUDIES / "cifar100.yaml")


def by_epoch(models: list[str], **settings: Any) -> dict[str, Any]:
    return {"late": {"kind": "variance_by_epoch", "models": models} | settings}


def refusal(folder: Path, models: list[str], **settings: Any) -> str:
    path = mini_with(folder, figures=by_epoch(models, **settings))
    with pytest.raises(VitscopeError) as caught:
        load_study(path)
    return str(caught.value).removeprefix(f"{path}: ")


def test_a_figure_by_epoch_shows_models_from_first_to_last() -> None:
    names = [f"vit@epoch_{n}" for n in (0, 1, 3, 10, 30)]
    assert CIFAR.figures["fig9_by_epoch"].models == [*names, "vit"]
    members = members_of(CIFAR, "fig9_by_epoch")
    assert [member["epoch"] for member in members] == [0, 1, 3, 10, 30, 86]
    assert members[1]["label"] == "ViT, epoch 1"
    assert members[-1]["label"] == "ViT"


def test_such_a_model_is_its_snapshot_and_the_rest_is_as_it_was() -> None:
    model, moment = CIFAR.models["vit"], CIFAR.models["vit@epoch_3"]
    assert moment.checkpoint == model.snapshots["epoch_3"]
    assert (moment.arch, moment.data, moment.training) == (model.arch, model.data, model.training)
    assert (moment.snapshots, moment.history) == ({}, None)
    assert CIFAR.network("vit@epoch_3") == CIFAR.network("vit")
    assert CIFAR.own_models == ["resnet", "vit", "swin", "alternet", "convnext"]


def test_the_moments_that_a_figure_names_are_shown_in_order_of_epochs(tmp_path: Path) -> None:
    figures = by_epoch(["vit"], snapshots=["end", "init"])
    study = load_study(mini_with(tmp_path, figures=figures))
    assert study.figures["late"].models == ["vit@init", "vit"]
    assert sorted(study.own_models) == sorted(MINI.own_models)


def test_what_cannot_be_shown_by_epoch_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, ["pit"]) == (
        "figures.late: models.pit has no snapshot of which it is known after how many epochs it "
        "was taken: name some epoch_N in its `snapshots`, for a figure by epoch."
    )
    assert refusal(tmp_path, ["vti"]).startswith("figures.late.models: found 'vti', allowed: ")
    assert refusal(tmp_path, ["vit"], snapshots=["init", "epoch_3"]) == (
        "figures.late.snapshots: found 'epoch_3', allowed: end, init, warmup."
    )


def test_other_kinds_name_those_that_show_snapshots(tmp_path: Path) -> None:
    figure = {"late": {"kind": "feature_variance", "models": ["vit"], "snapshots": ["init"]}}
    path = mini_with(tmp_path, figures=figure)
    with pytest.raises(VitscopeError, match="'variance_by_epoch'"):
        load_study(path)


def test_models_that_differ_in_their_seed_alone_are_repeats(tmp_path: Path) -> None:
    vit = {"family": "vit", "data": "shapes32", "checkpoint": {"path": "a.safetensors"}}
    arch = {"patch_size": 4, "embed_dim": 8, "depth": 2, "num_heads": 2}
    models = {
        name: vit | {"arch": arch, "training": training}
        for name, training in {
            "one": {"seed": 1},
            "two": {"seed": 2},
            "again": {"seed": 2, "epochs": 5},
            "three": {"seed": 3},
        }.items()
    }
    figures = {"f": {"kind": "feature_variance", "models": ["one", "two", "again", "three"]}}
    study = load_study(mini_with(tmp_path, models=models, figures=figures, videos={}, buildups={}))
    assert study.repeats() == [["one", "three", "two"]]
