from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.studies import BUNDLED
from tests.helpers.tiers import some_of
from tests.runs.copies import Workflow, edited, write_study

# What one settles on in a study that is otherwise right.
Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Fault:
    """A mistake of a user, and the sentence; {place} is the folder of the studies."""

    says: str
    target: str = "figures/own/fig9.pdf"
    change: Change = lambda _: None
    default: str = "other"


def without_batches(settings: dict[str, Any]) -> None:
    settings["analysis"]["batch_size"] = 0


FAULTS = {
    "a mistake in a study": Fault(
        "{place}/own.yaml: analysis.batch_size: found 0, allowed: a number from 1 on.",
        change=without_batches,
    ),
    "a file of results of a study with a mistake": Fault(
        "{place}/own.yaml: analysis.batch_size: found 0, allowed: a number from 1 on.",
        "results/own/tables/feature_variance.parquet",
        without_batches,
    ),
    # Where one study is broken, the others can be used; rules match any model.
    "a model of another study": Fault(
        "{place}/other.yaml: models: found 'mixer', allowed: resnet, vit.",
        "results/other/feature_variance/mixer.parquet",
        without_batches,
    ),
    "a study that is not there": Fault(
        "config/config.yaml or --config: study: found 'mimi', allowed: {studies}. Did you mean "
        "'mini'?",
        default="mimi",
    ),
    "a model that cannot be trained": Fault(
        "{place}/own.yaml: top level: the key 'training' is missing: add it to train vit.",
        "results/own/training/vit/end.safetensors",
        lambda settings: settings.pop("training"),
    ),
    "an epoch that is not kept": Fault(
        "{place}/own.yaml: training.snapshots, for models.vit: found 'epoch_7', allowed: epoch_0, "
        "epoch_2. Did you mean 'epoch_2'?",
        "results/own/training/vit/epoch_7.safetensors",
        lambda settings: settings["training"].update(snapshots=[2, 0, 7]),
    ),
    "a checkpoint that is not there": Fault(
        "{place}/own.yaml: models.resnet.checkpoint.path: there is no file {place}/none.pth: put "
        "one there or correct the path.",
        "results/own/checkpoints/resnet.safetensors",
    ),
    "a video that is not there": Fault(
        "{place}/own.yaml: videos.walk.source.path: there is no file or folder "
        "{root}/walk.gif: {place}/walk.gif is there, but the path starts at the working directory: "
        "put one there or correct the path.",
        "figures/own/walk.webp",
        lambda settings: settings.update(
            videos={"walk": {"model": "vit", "source": {"path": "walk.gif"}}}
        ),
    ),
}
WITH_EVERY_CHANGE = (
    "a mistake in a study",
    "a model of another study",
    "a checkpoint that is not there",
)


def write_own(folder: Path, change: Change) -> None:
    """Write a study with a mistake, and beside it one that can be used."""

    def with_path(settings: dict[str, Any]) -> None:
        for model in settings["models"].values():
            model["checkpoint"] = {"path": str(folder / "none.pth")}

    def changed(settings: dict[str, Any]) -> None:
        with_path(settings)
        change(settings)

    (folder / "walk.gif").touch()
    write_study(folder / "own.yaml", changed)
    write_study(folder / "other.yaml", with_path)


@pytest.mark.parametrize("name", some_of(FAULTS, *WITH_EVERY_CHANGE))
def test_a_run_ends_in_one_sentence(fresh: Workflow, tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    write_own(tmp_path, fault.change)
    code, output = Workflow(fresh.root, tmp_path).run(fault.target, default=fault.default)
    assert code == 1
    assert "Traceback" not in output
    assert 'File "' not in output
    lines = output.strip().splitlines()
    assert sum(line.startswith("vitscope: ") for line in lines) == 1
    assert not any(line.startswith("Job ") for line in lines)
    studies = ", ".join(sorted([*BUNDLED, "other", "own"]))
    says = fault.says.format(place=tmp_path, root=fresh.root, studies=studies)
    assert lines[-1] == f"vitscope: {says}"


@pytest.mark.nightly
def test_a_study_may_measure_what_it_trains(fresh: Workflow, tmp_path: Path) -> None:
    folder = "results/own/training/vit"

    def change(settings: dict[str, Any]) -> None:
        settings["training"]["snapshots"] = [1]
        settings["models"]["vit"] |= {
            "checkpoint": {"path": f"{folder}/end.safetensors"},
            "snapshots": {"epoch_1": {"path": f"{folder}/epoch_1.safetensors"}},
            "history": {"path": f"{folder}/history.parquet"},
        }
        sharpness = {"kind": "hessian", "models": ["vit"], "snapshots": ["epoch_1", "end"]}
        curves = {"kind": "training", "models": ["vit"]}
        settings["figures"] |= {"sharpness": sharpness, "curves": curves}

    write_own(tmp_path, change)
    targets = ("figures/own/sharpness.pdf", "figures/own/curves.pdf")
    plan = Workflow(fresh.root, tmp_path).plan(*targets)
    found = (plan["train_model"], plan["take_snapshot"], plan["convert_snapshot"])
    assert found == (1, 1, 1)


def test_a_key_of_the_settings_that_stands_twice(fresh: Workflow) -> None:
    """Snakemake alone would take the last."""
    with edited(fresh.root / "config" / "config.yaml", lambda text: f"{text}study: mini\n"):
        code, output = fresh.run("all")
    assert code == 1
    said = "config/config.yaml is not valid: line 4: found the key 'study' again, which line 2 has"
    assert said in output
