"""The study of the paper, whole: checkpoints from a server, real data, the authors' values.

The checkpoints are the golden ones, which have the layout of the published files. Lock file,
download, translation of keys, shards, variance, claims and both figures are those of a user.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.helpers.golden import Golden
from tests.helpers.web import running_site, whole
from tests.runs.copies import FEW_IMAGES, REPOSITORY, Workflow, copy_workflow
from vitscope.jobs.tables import find_table

pytestmark = pytest.mark.nightly

MODELS = ("resnet_50", "vit_ti", "pit_ti", "swin_ti")
CUT_POINTS = {"resnet_50": 17, "vit_ti": 25, "pit_ti": 27, "swin_ti": 28}


def golden_study(golden: Golden, root: str) -> dict[str, Any]:
    """Return the study of the paper with other addresses, and with the 16 golden images."""
    path = REPOSITORY / "config" / "studies" / "paper.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    parquet = golden.shared / "data" / "cifar100" / "{split}.parquet"
    settings["data"]["cifar100"]["source"] = {"kind": "parquet", "path": str(parquet)}
    settings["models"] = {name: settings["models"][name] for name in MODELS}
    for name in MODELS:
        settings["models"][name]["checkpoint"] = {"url": f"{root}/{name}.pth.tar"}
    settings["analysis"] = SMALL
    settings["training"]["batch_size"] = SMALL["augmented"]["images"]
    del settings["data"]["imagenet"], settings["figures"]["fig9_imagenet"]
    # Landscapes of real networks take minutes; their values are tested elsewhere.
    settings["figures"] = {
        name: figure
        for name, figure in settings["figures"].items()
        if not figure["kind"].startswith("landscape")
    }
    for name, figure in settings["figures"].items():
        figure["models"] = [IN_PLACE_OF.get(model, model) for model in figure["models"]]
        if name in ("fig2a", "fig8"):
            del figure["published"]
    return settings


# The 16 golden images.
SMALL = FEW_IMAGES | {"images": 16, "seed": None}
IN_PLACE_OF = {
    "resnet50_imagenet": "resnet_50",
    "vit_tiny_imagenet": "vit_ti",
    "deit_tiny_imagenet": "vit_ti",
    "pit_ti_imagenet": "pit_ti",
    "swin_tiny_imagenet": "swin_ti",
}


@pytest.fixture(scope="module")
def golden_run(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A copy of the workflow in which the study was made from a server."""
    folder = tmp_path_factory.mktemp("golden")
    with running_site() as site:
        for name in MODELS:
            file = folder / f"{name}.pth.tar"
            torch.save({"state_dict": golden.state_dict(name)}, file)
            site.at(f"/{name}.pth.tar", whole(file.read_bytes()))
        studies = folder / "studies"
        studies.mkdir()
        settings = golden_study(golden, site.root)
        (studies / "golden.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        workflow = copy_workflow(folder / "copy", studies)
        workflow.make("all", default="golden")
    return workflow


def test_table_holds_the_authors_values(golden_run: Workflow, golden: Golden) -> None:
    table = find_table("feature_variance").read(
        golden_run.root / "results/golden/tables/feature_variance.parquet"
    )
    assert table.groupby("model").size().to_dict() == CUT_POINTS
    for name in ("resnet_50", "vit_ti"):
        measured = table[table["model"] == name].sort_values("index")["variance"].to_list()
        assert measured == pytest.approx(golden.expected[name]["variance"], rel=1e-5)


def test_amplitudes_are_those_of_the_authors(golden_run: Workflow, golden: Golden) -> None:
    table = find_table("fourier").read(golden_run.root / "results/golden/tables/fourier.parquet")
    diagonal = table[table["measure"] == "diagonal"]
    for name in ("resnet_50", "vit_ti"):
        expected = golden.expected[name]["delta_log_amplitude"]
        for index, points in diagonal[diagonal["model"] == name].groupby("index"):
            measured = points.sort_values("frequency")["delta_log_amplitude"].to_list()
            assert measured == pytest.approx(expected[index], abs=1e-4)


def test_likelihoods_are_those_of_the_authors(golden_run: Workflow, golden: Golden) -> None:
    path = golden_run.root / "results/golden/tables/classification.parquet"
    nll = find_table("classification").read(path).set_index("model")["nll"]
    for name in ("resnet_50", "vit_ti"):
        assert nll[name] == pytest.approx(golden.expected[name]["nll"], rel=1e-5)


def test_digests_of_first_downloads_are_locked(golden_run: Workflow) -> None:
    lock = golden_run.studies / "golden.lock.yaml"
    assert lock.read_text(encoding="utf-8").count("sha256:") == len(MODELS)


def test_curves_are_scored_against_the_published_ones(golden_run: Workflow) -> None:
    scores = find_table("agreement").read(
        golden_run.root / "results/golden/tables/agreement.parquet"
    )
    of_fig9 = scores[scores["figure"] == "fig9"]
    assert of_fig9["model"].to_list() == ["resnet_50", "vit_ti"]
    assert of_fig9["rank_correlation"].between(-1, 1).all()


def test_every_figure_of_the_study_is_there(golden_run: Workflow) -> None:
    study = yaml.safe_load((golden_run.studies / "golden.yaml").read_text(encoding="utf-8"))
    for figure in study["figures"]:
        assert Path(golden_run.root, "figures", f"{figure}.pdf").read_bytes().startswith(b"%PDF")
