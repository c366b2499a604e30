"""The study of the paper, whole: checkpoints from a server, real data, the authors' values.

The checkpoints are the golden ones, which have the layout of the published files; as that of the
authors, the server leads on to signed addresses at another host. Lock file, download, translation
of keys, shards, variance, claims and both figures are those of a user.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.golden import Golden
from tests.helpers.studies import bundled
from tests.helpers.web import leading_to, running_site, whole
from tests.runs.copies import Workflow, with_study
from vitscope.files.strict_yaml import load_yaml
from vitscope.jobs.tables import find_table

pytestmark = pytest.mark.nightly

MODELS = ("resnet_50", "vit_ti", "pit_ti", "swin_ti")
CUT_POINTS = {"resnet_50": 17, "vit_ti": 25, "pit_ti": 27, "swin_ti": 28}


def golden_study(golden: Golden, root: str) -> dict[str, Any]:
    """Return the study of the paper with other addresses, and with the 16 golden images."""
    settings = bundled("paper")
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


# Of so few images that a real network has each figure in seconds.
SMALL: dict[str, Any] = {
    # The 16 golden images.
    "images": 16,
    "seed": None,
    "shard_size": 8,
    "batch_size": 4,
    "cka": {"batch_size": 4},
    "classification": {"images": 16},
    "frequency_noise": {"images": 4, "frequencies": [0.2, 0.8], "seeds": 1},
    "lesion": {"images": 4},
    "occlusion": {"images": 4, "shares": [0.5], "draws": 1},
    "robustness": {"images": 4, "corruptions": ["contrast", "fog"], "severities": [3]},
    "augmented": {"images": 8},
    "fit": {"images": 8},
    "hessian": {
        "sizes": [2],
        "batches": 1,
        "top": 1,
        "iterations": 40,
        "density_size": 2,
        "density_batches": 1,
        "density_steps": 5,
    },
}
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
    with running_site() as site, running_site() as storage:
        for name in MODELS:
            file = folder / f"{name}.pth.tar"
            torch.save({"state_dict": golden.state_dict(name)}, file)
            asset = leading_to(storage, f"/asset-of-{name}", whole(file.read_bytes()))
            site.at(f"/{name}.pth.tar", asset)
        workflow = with_study(folder, "golden", golden_study(golden, site.root))
        workflow.make("all", default="golden")
        assert [len(storage.asked(f"/asset-of-{name}")) for name in MODELS] == [1] * len(MODELS)
    return workflow


def test_table_holds_the_authors_values(golden_run: Workflow, golden: Golden) -> None:
    table = find_table("feature_variance").read(
        golden_run.root / "results/golden/tables/feature_variance.parquet"
    )
    assert table.groupby("model").size().to_dict() == CUT_POINTS
    for name in ("resnet_50", "vit_ti"):
        measured = table[table["model"] == name].sort_values("index")["variance"].to_list()
        assert measured == pytest.approx(golden.expected[name]["variance"], rel=1e-5)


def test_digests_of_first_downloads_are_locked(golden_run: Workflow) -> None:
    study, lock = (load_yaml(golden_run.studies / f"golden{end}.yaml") for end in ("", ".lock"))
    # By the addresses that the study has, which do not change as signed ones do.
    assert {*lock} == {study["models"][name]["checkpoint"]["url"] for name in MODELS}


def test_every_figure_of_the_study_is_there(golden_run: Workflow) -> None:
    for figure in load_yaml(golden_run.studies / "golden.yaml")["figures"]:
        assert Path(golden_run.root, "figures", f"{figure}.pdf").read_bytes().startswith(b"%PDF")
