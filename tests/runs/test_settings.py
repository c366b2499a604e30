"""What is wrong in studies and in the configuration ends `snakemake` in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from tests.runs.copies import Workflow, edited, write_study


def refusal(workflow: Workflow, studies: Path | str, *targets: str, default: str = "mini") -> str:
    """Run what must end before any job; return the sentence that it ends in."""
    code, output = Workflow(workflow.root, Path(studies)).run(*targets, default=default)
    assert code == 1
    assert "Traceback" not in output
    assert 'File "' not in output
    lines = output.strip().splitlines()
    assert sum(line.startswith("vitscope: ") for line in lines) == 1
    assert not any(line.startswith("Job ") for line in lines)
    return lines[-1].removeprefix("vitscope: ")


def with_path(path: str) -> Any:
    """Give every model the checkpoint at a path."""

    def change(settings: dict[str, Any]) -> None:
        for model in settings["models"].values():
            model["checkpoint"] = {"path": path}

    return change


def test_a_typo_in_a_study(fresh: Workflow, tmp_path: Path) -> None:
    def change(settings: dict[str, Any]) -> None:
        with_path("net.pth")(settings)
        settings["figures"]["fig9"]["modles"] = []

    write_study(tmp_path / "own.yaml", change)
    write_study(tmp_path / "other.yaml", with_path("net.pth"))
    assert refusal(fresh, tmp_path, "figures/own/fig9.pdf") == (
        f"{tmp_path}/own.yaml: figures.fig9.modles: unknown key, allowed: kind, models, pairs, "
        "published, snapshots. "
        "Did you mean 'models'?"
    )
    # Another study of that folder can be used.
    assert refusal(fresh, tmp_path, "figures/other/fig8.pdf") == (
        f"{tmp_path}/other.yaml: figures, for the target figures/other/fig8.pdf: found 'fig8', "
        "allowed: fig9. Did you mean 'fig9'?"
    )


@pytest.mark.nightly
def test_a_study_that_is_no_yaml(fresh: Workflow, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("title: own\ntitle: other\n")
    assert refusal(fresh, own) == (
        f"{tmp_path}/own.yaml is not valid: line 2: found the key 'title' again, which line 1 has: "
        "keep one."
    )


def test_a_study_that_does_not_exist(fresh: Workflow, studies: Path) -> None:
    assert refusal(fresh, studies, default="mimi") == (
        "config/config.yaml or --config: study: found 'mimi', allowed: cifar100, everything, mini, "
        "paper, probing, tiny, whole. "
        "Did you mean 'mini'?"
    )


@pytest.mark.nightly
def test_a_study_without_a_name(fresh: Workflow, studies: Path) -> None:
    sentence = refusal(fresh, studies, default="")
    assert sentence == "config/config.yaml or --config: study: found nothing, allowed: text."


def test_a_folder_of_studies_that_does_not_exist(fresh: Workflow) -> None:
    assert refusal(fresh, "/nowhere/own") == (
        "config/config.yaml or --config: studies_dir: found '/nowhere/own', allowed: a folder or "
        "file that exists."
    )


@pytest.mark.nightly
def test_a_key_that_is_twice_in_the_configuration(fresh: Workflow, studies: Path) -> None:
    with edited(fresh.root / "config" / "config.yaml", lambda text: text + "study: paper\n"):
        sentence = refusal(fresh, studies)
    assert sentence.startswith("config/config.yaml is not valid: line ")
    assert "found the key 'study' again" in sentence


def test_a_model_that_cannot_be_trained(fresh: Workflow, tmp_path: Path) -> None:
    def change(settings: dict[str, Any]) -> None:
        with_path("net.pth")(settings)
        del settings["training"]

    write_study(tmp_path / "own.yaml", change)
    target = "results/own/training/vit/end.safetensors"
    assert refusal(fresh, tmp_path, target) == (
        f"{tmp_path}/own.yaml: top level: the key 'training' is missing: add it to train vit."
    )


@pytest.mark.nightly
def test_studies_may_be_given_as_a_list(fresh: Workflow, studies: Path, tmp_path: Path) -> None:
    write_study(tmp_path / "own.yaml", with_path("net.pth"))
    places = f"[{studies}/tiny.yaml, {tmp_path}]"
    plan = Workflow(fresh.root, Path(places)).plan("figures/tiny/fig9.pdf")
    assert plan["draw_figure"] == 1


@pytest.mark.nightly
def test_a_study_may_measure_what_it_trains(fresh: Workflow, tmp_path: Path) -> None:
    folder = "results/own/training/vit"

    def change(settings: dict[str, Any]) -> None:
        with_path(f"{folder}/end.safetensors")(settings)
        settings["training"]["snapshots"] = [1]
        vit = settings["models"]["vit"]
        vit["snapshots"] = {"epoch_1": {"path": f"{folder}/epoch_1.safetensors"}}
        vit["history"] = {"path": f"{folder}/history.parquet"}
        settings["figures"]["curves"] = {"kind": "training", "models": ["vit"]}
        settings["figures"]["sharpness"] = {
            "kind": "hessian",
            "models": ["vit"],
            "snapshots": ["epoch_1", "end"],
        }

    write_study(tmp_path / "own.yaml", change)
    workflow = Workflow(fresh.root, tmp_path)
    plan = workflow.plan("results/own/feature_variance/vit.parquet")
    assert (plan["train_model"], plan["convert_checkpoint"]) == (1, 1)
    plan = workflow.plan("figures/own/sharpness.pdf", "figures/own/curves.pdf")
    found = (plan["train_model"], plan["take_snapshot"], plan["convert_snapshot"])
    assert found == (1, 1, 1)
