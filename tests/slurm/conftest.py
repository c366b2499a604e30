"""A cluster, small studies, and what a local run makes of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.runs.copies import SETTINGS, Workflow, copy_workflow, write_study
from tests.slurm.cluster import Cluster, cluster, missing
from vitscope.networks.family import find_family

# Its first layer has a token per pixel: far more to hold than its few weights let expect.
LARGE = {"patch_size": 1, "embed_dim": 384, "depth": 1, "num_heads": 4}


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running cluster; `snakemake` finds it through the environment."""
    if missing():
        pytest.skip(f"needs Slurm, which tests/slurm/install.sh installs; missing: {missing()}")
    with (
        cluster(tmp_path_factory.mktemp("slurm")) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        for key, value in running.environment.items():
            patch.setenv(key, value)
        yield running


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of studies of one model: `sharded` has four shards, `large` needs much memory."""
    folder = tmp_path_factory.mktemp("studies")

    def one_model(settings: dict[str, Any], name: str) -> None:
        torch.manual_seed(0)
        model = settings["models"]["vit"]
        network = find_family("vit").build(model["arch"], 10, 32)
        torch.save({"state_dict": network.state_dict()}, folder / f"{name}.pth.tar")
        model["checkpoint"] = {"path": str(folder / f"{name}.pth.tar")}
        del settings["models"]["resnet"]
        settings["figures"]["fig9"]["models"] = ["vit"]

    def sharded(settings: dict[str, Any]) -> None:
        settings["analysis"]["shard_size"] = 4
        one_model(settings, "sharded")

    def large(settings: dict[str, Any]) -> None:
        settings["models"]["vit"]["arch"] = LARGE
        settings["data"]["shapes32"]["splits"]["test"]["images"] = 64
        settings["analysis"] |= {"images": 64, "shard_size": 64, "batch_size": 64}
        one_model(settings, "large")

    assert len(SETTINGS["models"]) == 2
    write_study(folder / "sharded.yaml", sharded)
    write_study(folder / "large.yaml", large)
    return folder


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    """A copy of the workflow for runs without Slurm."""
    return copy_workflow(tmp_path_factory.mktemp("local") / "copy", studies)


@pytest.fixture
def remote(tmp_path: Path, studies: Path) -> Workflow:
    """A copy of the workflow in which nothing was made."""
    return copy_workflow(tmp_path / "copy", studies)
