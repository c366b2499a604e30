"""Small studies, and copies of the workflow in which they were made."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.runs.copies import ALL_MADE, SETTINGS, Workflow, copy_workflow, write_study
from vitscope.networks.family import find_family


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint of each model, as others would have saved it."""
    folder = tmp_path_factory.mktemp("weights")
    for name, model in SETTINGS["models"].items():
        torch.manual_seed(0)
        network = find_family(model["family"]).build(model["arch"], 10, 32)
        torch.save({"state_dict": network.state_dict()}, folder / f"{name}.pth.tar")
    return folder


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Path:
    """A folder of studies: `tiny` keeps its latents, `sharded` has one model and seven shards."""
    folder = tmp_path_factory.mktemp("studies")

    def tiny(settings: dict[str, Any]) -> None:
        for name, model in settings["models"].items():
            model["checkpoint"] = {"path": str(weights / f"{name}.pth.tar")}
        settings["analysis"]["keep_latents"] = True

    def sharded(settings: dict[str, Any]) -> None:
        tiny(settings)
        settings["analysis"] |= {"keep_latents": False, "shard_size": 2}
        del settings["models"]["resnet"]
        settings["figures"]["fig9"]["models"] = ["vit"]

    write_study(folder / "tiny.yaml", tiny)
    write_study(folder / "sharded.yaml", sharded)
    return folder


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    """A copy of the workflow in which nothing was made of the studies that tests share."""
    return copy_workflow(tmp_path_factory.mktemp("fresh") / "copy", studies)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    """A copy in which `tiny`, as the default study, and the variance of `sharded` were made."""
    workflow = copy_workflow(tmp_path_factory.mktemp("finished") / "copy", studies)
    workflow.make("--cores", "2", *ALL_MADE, default="tiny")
    return workflow
