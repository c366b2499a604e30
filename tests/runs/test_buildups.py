import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.runs.copies import SETTINGS, Workflow, copy_workflow, write_study
from vitscope.buildup.rule import Plan, follow_buildup
from vitscope.files.strict_yaml import load_yaml

RECIPE = {"epochs": 3, "images": 32, "mixing_probability": 0}
GROWN = {"heads": [1, 1, 1, 1], "head_dim": 4, "window": 4, "training": RECIPE}
STEPS = "results/own/buildups/grown/trained"


def written(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
    """Write a study with a build-up of two or three networks; its baseline needs no weights."""

    def add(settings: dict[str, Any]) -> None:
        arch = {"block": "basic", "blocks": [1, 1, 2, 2], "width": 4}
        settings["models"]["cnn"] = SETTINGS["models"]["resnet"] | {"arch": arch}
        for model in settings["models"].values():
            model["checkpoint"] = {"path": "no/weights.pth"}
        settings["buildups"] = {"grown": {"baseline": "cnn", **GROWN}}
        change(settings)

    write_study(folder / "own.yaml", add)


@pytest.fixture
def buildups(fresh: Workflow, tmp_path: Path) -> Workflow:
    written(tmp_path)
    return Workflow(fresh.root, tmp_path)


def test_what_is_known_before_the_first_decision(buildups: Workflow) -> None:
    known = {"decide_step": 1, "tabulate_buildup": 1}
    assert buildups.plan("figures/own/grown.pdf") == known | {"draw_buildup": 1}


@pytest.mark.nightly
def test_a_figure_may_have_the_name_of_a_build_up_of_another_study(
    fresh: Workflow, tmp_path: Path
) -> None:
    grown = {"fig9b": GROWN | {"baseline": "cnn"}}
    written(tmp_path, lambda settings: settings.update(buildups=grown))
    other = load_yaml(tmp_path / "own.yaml")
    other |= {"buildups": {}, "figures": {"fig9b": other["figures"]["fig9"]}}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other), encoding="utf-8")
    workflow = Workflow(fresh.root, tmp_path)
    assert workflow.plan("figures/own/fig9b.pdf")["draw_buildup"] == 1
    code, output = workflow.run("-n", "figures/other/fig9b.pdf")
    # It is the figure, whose checkpoints are missing.
    assert code != 0
    assert "no/weights.pth" in output


def kill_within_a_training(workflow: Workflow, step: int) -> None:
    """Start a run and kill it, its jobs with it, after the first epoch of a step."""
    process = workflow.start(
        "--cores", "1", "figures/own/grown.png", start_new_session=True, stdout=subprocess.DEVNULL
    )
    kept = workflow.root / STEPS / f"step_{step}" / "unfinished" / "checkpoint_1.safetensors"
    deadline = time.monotonic() + 300
    while not kept.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    workflow.make("--unlock")


@pytest.mark.nightly
def test_a_build_up_that_is_killed_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    studies.mkdir()
    written(studies)
    calm = copy_workflow(tmp_path / "calm", studies)
    calm.make("--cores", "1", "figures/own/grown.png")
    table = pd.read_parquet(calm.root / "results/own/tables/buildup_grown.parquet")
    course = follow_buildup(Plan((1, 1, 2, 2), 1, 20), table["accuracy"].tolist())
    assert course.ended == "stages"
    assert [step.decision for step in course.steps] == table["decision"].tolist()
    assert table["images"].tolist() == [16] * 3
    assert calm.plan("figures/own/grown.png") == {}

    killed = copy_workflow(tmp_path / "killed", studies)
    for step in (0, 1):
        kill_within_a_training(killed, step)
    killed.make("--cores", "1", "figures/own/grown.png")
    log = killed.root / "logs/own/buildups/grown/trained/step_1/train.log"
    assert "going on after epoch" in log.read_text(encoding="utf-8")
    # What it needed to go on is gone from both.
    assert killed.digests("results", "figures") == calm.digests("results", "figures")

    # Decisions that are made again and come to the same train nothing.
    written(studies, lambda settings: settings["buildups"]["grown"].update(steps=19))
    output = calm.make("--cores", "1", "figures/own/grown.png")
    assert output.count("Deciding what step") == 4
    assert "Training what step" not in output
    assert killed.digests("results", "figures") == calm.digests("results", "figures")


@pytest.mark.nightly
def test_the_best_network_is_a_model_that_can_be_measured(tmp_path: Path) -> None:
    written(tmp_path)
    workflow = copy_workflow(tmp_path / "copy", tmp_path)
    workflow.make("--cores", "1", "figures/own/grown.png")
    best = load_yaml(workflow.root / "results/own/buildups/grown/model.yaml")

    def show(settings: dict[str, Any]) -> None:
        settings["models"] |= best
        settings["figures"] = {"best": {"kind": "spectrum", "models": ["grown"]}}

    written(tmp_path, show)
    workflow.make("--cores", "1", "figures/own/best.png")
    # Where nothing is there, all that its weights follow from is made first.
    for folder in ("results", "figures"):
        shutil.rmtree(workflow.root / folder / "own")
    planned = workflow.plan("figures/own/best.png")
    assert planned["train_step"] >= 1
    assert planned["decide_step"] >= 1
