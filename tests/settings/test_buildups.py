"""Build-ups of a study: what is filled in, what is refused, and what jobs are given."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.jobs import values_of
from tests.helpers.studies import mini, mini_with
from vitscope.buildup.deciding import Plan
from vitscope.buildup.trying import plan_of
from vitscope.errors import VitscopeError
from vitscope.jobs import buildups
from vitscope.settings.loading import load_study
from vitscope.settings.resolving import build_study


def buildup(**settings: Any) -> dict[str, Any]:
    return {"grown": {"baseline": "resnet"} | settings}


def refusal(folder: Path, sections: dict[str, Any]) -> str:
    path = mini_with(folder, **{"buildups": buildup()} | sections)
    with pytest.raises(VitscopeError) as caught:
        load_study(path)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"baseline": "rsenet"},
            "buildups.grown.baseline: found 'rsenet', allowed: alternet, convnext, mixer, pit, "
            "resnet, resnet_25, resnet_6, swin, vit, ",
        ),
        (
            {"baseline": "vit"},
            "buildups.grown.baseline: found a model of the family 'vit', allowed: alternet, "
            "resnet, whose blocks become MSAs.",
        ),
        (
            {"baseline": "alternet"},
            "buildups.grown.baseline: models.alternet.arch.attention: found [0, 1, 2, 1], allowed: "
            "[0, 0, 0, 0], where the build-up begins.",
        ),
        (
            {"window": 3},
            "buildups.grown.window: found 3, allowed: a divisor of 32, the side of the maps of "
            "the stage c1.",
        ),
        (
            {"window": 8},
            "buildups.grown.window: found 8, allowed: a divisor of 4, the side of the maps of "
            "the stage c4.",
        ),
        ({"heads": [1, 2]}, "buildups.grown.heads: found [1, 2], allowed: at least 4 entries."),
        ({"patience": 0}, "buildups.grown.patience: found 0, allowed: a number from 1"),
        ({"training": {"epoch": 3}}, "buildups.grown.training.epoch: unknown key, allowed: "),
        (
            {"weights": {"bundled": "resources/checkpoints/none"}},
            "buildups.grown.weights.bundled: found 'resources/checkpoints/none', allowed: a folder "
            "of this repository, relative to its root: correct it, or leave `weights` out to "
            "train.",
        ),
        (
            {"weights": {"bundled": "../.."}},
            "buildups.grown.weights.bundled: found '../..', allowed: a folder of this repository, ",
        ),
        (
            {"published": "fig9.csv"},
            "buildups.grown.published: found 'fig9.csv', allowed: fig12a.csv, which have "
            "accuracies by number of MSAs.",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    assert refusal(tmp_path, {"buildups": buildup(**settings)}).startswith(sentence)


def test_a_name_that_a_figure_has(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"buildups": {"fig9": {"baseline": "resnet"}}}) == (
        "buildups.fig9: there is a figure 'fig9', which would be the same file: rename one of them."
    )


@pytest.mark.parametrize(
    ("arch", "sentence"),
    [
        ({"depth": 50}, "buildups.grown.baseline: found a `depth` in models.resnet.arch, allowed"),
        (
            {"block": "basic", "blocks": [1, 1, 1, 1]},
            "buildups.grown.baseline: models.resnet.arch.blocks: found [1, 1, 1, 1], allowed: two "
            "blocks at least in a stage, of which the second becomes an MSA.",
        ),
    ],
)
def test_baselines_without_room(tmp_path: Path, arch: dict[str, Any], sentence: str) -> None:
    models = mini()["models"]
    models["resnet"]["arch"] = arch
    assert refusal(tmp_path, {"models": models}).startswith(sentence)


def test_a_baseline_that_cannot_be_trained(tmp_path: Path) -> None:
    data = mini()["data"]
    data["shapes32"]["splits"] = {"test": {}, "conflict": {}}
    analysis = mini()["analysis"] | {"augmented": {"split": "test"}}
    assert refusal(tmp_path, {"data": data, "analysis": analysis}) == (
        "data.shapes32.splits: found conflict, test, allowed: train and test among them: the "
        "networks of buildups.grown are trained on the one and compared on the other."
    )


def test_what_a_job_is_given(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path, buildups=buildup(training={"epochs": 3}, steps=2)))
    given = buildups.plan(study, "grown")
    assert given["baseline"] == study.network("resnet") | {
        "family": "alternet",
        "arch": {
            "block": "bottleneck",
            "blocks": [2, 3, 4, 2],
            "width": 8,
            "heads": [3, 6, 12, 24],
            "head_dim": 64,
            "window": 4,
        },
    }
    assert plan_of(given) == Plan((2, 3, 4, 2), 1, 2)
    # The recipe of the baseline, which has 8 epochs where the study has 16, and the changes.
    assert asdict(study.recipe_of_steps("grown")) == asdict(study.recipe("resnet")) | {"epochs": 3}
    assert buildups.weights_of_steps(study, "grown") == "trained"
    assert buildups.bundled_step(study, "grown", 2) is None
    assert values_of("draw_buildup", study, buildup="grown")["facts"] == {
        "Study": "own (small models on generated images)",
        "Data": "shapes32, test images",
        "Baseline": "ResNet, as an AlterNet without attention",
        "Training": "3 epochs of all training images, seed 0",
        "Weights": "trained by this workflow",
    }


def test_weights_that_are_bundled(tmp_path: Path) -> None:
    folder = "resources/checkpoints/mini"
    study = load_study(mini_with(tmp_path, buildups=buildup(weights={"bundled": folder})))
    assert buildups.weights_of_steps(study, "grown") == "bundled"
    assert buildups.bundled_step(study, "grown", 2) == f"{folder}/step_2.safetensors"


def test_records_of_runs_may_be_older_than_buildups(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path))
    settings = {key: value for key, value in study.settings.items() if key != "buildups"}
    assert build_study("old", study.path, settings).buildups == {}


def test_a_recipe_is_complete(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path, buildups=buildup()))
    assert asdict(study.recipe_of_steps("grown")) == asdict(study.recipe("resnet"))
