from typing import Any

from safetensors import safe_open

from tests.runs.copies import Workflow, write_study
from vitscope.jobs.tables import find_table

SNAPSHOTS = ("init", "warmup", "end", "epochs/epoch_0", "epochs/epoch_2")


def test_training_writes_snapshots_and_history(fresh, weights, tmp_path):
    """Weights are kept after three epochs, one of which never comes."""

    def change(settings: dict[str, Any]) -> None:
        for name, model in settings["models"].items():
            model["checkpoint"] = {"path": str(weights[name])}
        settings["training"]["snapshots"] = [2, 0, 7]

    write_study(tmp_path / "once.yaml", change)
    workflow = Workflow(fresh.root, tmp_path)
    workflow.make("results/once/training/vit/epoch_2.safetensors")
    made = workflow.digests("results/once/training")
    names = {path.removeprefix("results/once/training/vit/") for path in made}
    taken = {"history.parquet", "epoch_2.safetensors", "epochs/.snakemake_timestamp"}
    assert names == {*(f"{name}.safetensors" for name in SNAPSHOTS), *taken}
    # The snapshot that was asked for is a copy.
    assert len(set(made.values())) == len(names) - 1

    folder = fresh.root / "results/once/training/vit"
    history = find_table("training_history").read(folder / "history.parquet")
    assert history["epoch"].tolist() == [1, 2]
    assert history[["training_accuracy", "test_accuracy"]].stack().between(0, 1).all()
    for name in SNAPSHOTS:
        with safe_open(folder / f"{name}.safetensors", "pt") as file:
            assert file.metadata()["snapshot"] == name.rpartition("/")[2]
