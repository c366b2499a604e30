"""The study cifar100 on the real images: what is written of it, and each of its figures.

Its source is parquet here, where that of users is the archive, which has the same images.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.compare import EXPECTED, as_text, differences, read_text
from tests.helpers.studies import bundled
from tests.runs.copies import with_study
from vitscope.claims.tables import CLAIMS
from vitscope.jobs.tables import find_table

pytestmark = pytest.mark.nightly


@pytest.fixture
def study(cifar100_source: dict[str, str]) -> dict[str, Any]:
    settings = bundled("cifar100")
    settings["data"]["cifar100"]["source"] = cifar100_source
    return settings


def test_when_msas_begin_to_reduce_the_variance(tmp_path: Path, study: dict[str, Any]) -> None:
    """As docs/training.md says of 1,000 images, epoch by epoch; and below Fig. 9 of the README."""
    names = ("fig9", "fig9_recipes", "seeds", "figD1", "fig9_by_epoch", "share_by_epoch")
    names += ("mixing_variance",)
    study["figures"] = {name: study["figures"][name] for name in names}
    figures = [f"figures/{name}.pdf" for name in names]
    run = with_study(tmp_path, "real", study)
    run.make(*figures, "results/real/tables/claims.md", default="real")
    moments = ("vit@epoch_0", "vit@epoch_1", "vit@epoch_3", "vit@epoch_10", "vit@epoch_30", "vit")
    for measure, column, counts in (
        ("feature_variance", "variance", [5, 3, 1, 0, 3, 4]),
        ("spatial_share", "share", [3, 7, 7, 7, 4, 3]),
        ("fourier", "delta_log_amplitude", [5, 7, 7, 8, 5, 2]),
    ):
        parts = run.root / "results/real" / measure
        tables = [find_table(measure).read(parts / f"{moment}.parquet") for moment in moments]
        # Of a spectrum, the highest frequency counts.
        tables = [table.groupby("index").last() for table in tables]
        falls = [lowered(table["kind"], table[column]) for table in tables]
        assert [sum(each) for each in falls] == counts
    table = find_table("feature_variance").read(
        run.root / "results/real/tables/feature_variance.parquet"
    )
    vit = table[table["model"] == "vit"].sort_values("index")
    assert lowered(vit["kind"], vit["variance"]) == [True] * 4 + [False] * 4
    claims = CLAIMS.read(run.root / "results/real/tables/claims.parquet")
    of_fig9 = claims[(claims["figure"] == "fig9") & (claims["model"] == "vit_authors")]
    counted = of_fig9.set_index("claim")[["measured_count", "measured_total", "holds"]]
    for claim in ("msa_reduces_variance", "mlp_increases_variance"):
        assert counted.loc[claim].tolist() == [6, 6, "yes, in this network"]
    # Three trainings bear out both claims on the recipe.
    of_seeds = claims[claims["figure"] == "seeds"].pivot(
        index="claim", columns="model", values="measured_count"
    )
    assert of_seeds.loc["msa_reduces_variance"].tolist() == [5, 6, 5]
    assert {*claims.loc[claims["figure"] == "seeds", "holds"]} == {"yes"}
    # Where no image changes the weights, the variance does not fall as much, but within windows.
    of_mixing = claims[claims["claim"] == "msa_reduces_variance_more"]
    assert of_mixing["measured_count"].tolist() == [2, 4, 3, 4, 5, 5]
    # As docs/paper.md says of the others.
    of_msas = claims[(claims["figure"] == "figD1") & (claims["claim"] == "msa_reduces_variance")]
    found = of_msas.set_index("model")[["measured_count", "measured_total", "holds"]].T
    no = "no, in this network"
    assert found.to_dict("list") == {"swin": [2, 8, no], "alternet": [0, 4, no]}


def test_the_claims_of_the_paper_are_as_its_page_says(
    tmp_path: Path, study: dict[str, Any]
) -> None:
    """Count the claims of every figure of which docs/paper.md has some, on all that they take."""
    committed = (EXPECTED / "cifar100" / "claims.csv").read_text(encoding="utf-8")
    expected = read_text("claims", committed)
    study["figures"] = {name: study["figures"][name] for name in expected["figure"].unique()}
    run = with_study(tmp_path, "real", study)
    run.make("results/real/tables/claims.md", default="real")
    text = as_text("claims", run.root / "results" / "real" / "tables")
    assert differences("claims", expected, read_text("claims", text)) == []


def lowered(kinds: Any, variances: Any) -> list[bool]:
    change, kinds = np.diff(variances), np.array(kinds)[1:]
    return (change[kinds == "msa"] < 0).tolist()


def test_what_the_study_of_long_trainings_trains_is_measured(
    tmp_path: Path, cifar100_source: dict[str, str]
) -> None:
    """The study of trainings of the paper's length, for two epochs of a hundredth of the images."""
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
