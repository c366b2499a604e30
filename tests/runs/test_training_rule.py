"""The rule that trains models."""

from typing import Any

from safetensors import safe_open

from tests.runs.copies import Workflow, write_study
from vitscope.workflow.tables import find_table

SNAPSHOTS = ("init", "warmup", "end")


def test_training_writes_snapshots_and_history_the_same_every_time(fresh, weights, tmp_path):
    def change(settings: dict[str, Any]) -> None:
        for name, model in settings["models"].items():
            model["checkpoint"] = {"path": str(weights[name])}

    for study in ("once", "twice"):
        write_study(tmp_path / f"{study}.yaml", change)
    workflow = Workflow(fresh.root, tmp_path)
    workflow.make(*(f"results/{s}/training/vit/end.safetensors" for s in ("once", "twice")))

    once, twice = (workflow.digests(f"results/{s}/training") for s in ("once", "twice"))
    assert list(once.values()) == list(twice.values())
    names = {path.removeprefix("results/once/training/vit/") for path in once}
    assert names == {*(f"{name}.safetensors" for name in SNAPSHOTS), "history.parquet"}
    assert len(set(once.values())) == len(names)

    folder = fresh.root / "results/once/training/vit"
    history = find_table("training_history").read(folder / "history.parquet")
    assert history["epoch"].tolist() == [1, 2]
    assert history["test_accuracy"].between(0, 1).all()
    for name in SNAPSHOTS:
        with safe_open(folder / f"{name}.safetensors", "pt") as file:
            assert file.metadata()["snapshot"] == name
