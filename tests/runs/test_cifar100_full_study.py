"""The study of trainings of the paper's length, for two epochs of a hundredth of the images."""

from pathlib import Path

import pytest
import yaml

from tests.helpers.studies import bundled
from tests.runs.copies import with_study
from vitscope.jobs.tables import find_table

pytestmark = pytest.mark.nightly


def test_what_the_study_trains_is_measured(tmp_path: Path, cifar100_source: dict[str, str]) -> None:
    settings = bundled("cifar100_full")
    data, vit = settings["data"]["cifar100"], settings["models"]["vit_ti"]
    data["source"] = cifar100_source
    data["splits"] = {"train": {"images": 500}, "test": {"images": 100}}
    settings["models"] = {"vit_ti": vit}
    vit["snapshots"] = {name: vit["snapshots"][name] for name in ("epoch_0", "warmup")}
    settings["training"] |= {"epochs": 2, "warmup_epochs": 1}
    settings["analysis"] |= {"images": 16, "shard_size": 8, "batch_size": 8}
    shown = ("fig9", "fig9_by_epoch", "training")
    settings["figures"] = {
        name: settings["figures"][name] | {"models": ["vit_ti"]} for name in shown
    }
    settings["figures"]["fig9"].pop("published")
    renamed = yaml.safe_load(yaml.safe_dump(settings).replace("cifar100_full", "real"))
    workflow = with_study(tmp_path, "real", renamed)
    workflow.make(*(f"figures/{name}.pdf" for name in shown), default="real")
    results = workflow.root / "results" / "real"
    history = find_table("learning_curves").read(results / "learning_curves/vit_ti.parquet")
    assert history["epoch"].tolist() == [0, 1, 2]
    # The network knows nothing yet, and is no worse than that.
    assert history["loss"].dropna().between(4, 5).all()
    trained = results / "training/vit_ti"
    assert {"init.safetensors", "epoch_0.safetensors"} <= {path.name for path in trained.iterdir()}
    assert {"epoch_0.safetensors", "epoch_1.safetensors"} <= {
        path.name for path in (trained / "epochs").iterdir()
    }
    for moment in ("vit_ti@epoch_0", "vit_ti@warmup", "vit_ti"):
        table = find_table("feature_variance").read(results / f"feature_variance/{moment}.parquet")
        assert len(table) == 25
        assert (table["variance"] > 0).all()
