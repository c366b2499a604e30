from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.runs.copies import SETTINGS, Workflow, copy_workflow, write_study
from tests.slurm.cluster import Cluster, cluster, missing
from vitscope.networks.building.networks import find_family

# A network that takes its time on a node, and none on the machine that compares; and, of more than
# two images, memory of which torch knows nothing, so that nobody could count it before.
SLOW = """
import os
import time

import numpy as np
from torch import nn


class Slow(nn.Module):
    def __init__(self, seconds_of_training=0, seconds=0, megabytes=0):
        super().__init__()
        self.seconds = {True: seconds_of_training, False: seconds}
        self.megabytes = megabytes
        self.stem = nn.Conv2d(3, 8, 4, 4)
        self.branch = nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 10)

    def forward(self, images):
        if "SLURM_JOB_ID" in os.environ:
            time.sleep(self.seconds[self.training])
        if self.megabytes and len(images) > 2:
            held = np.ones(self.megabytes << 17)
            # As long as it takes Slurm to look.
            time.sleep(8)
            del held
        maps = self.stem(images)
        maps = maps + self.norm(self.branch(maps)).relu()
        return self.head(maps.mean((2, 3)))
"""
# More than is asked for at first, and less than twice as much.
MEGABYTES = 900


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
    """A folder of studies of one model: four shards, much memory, a training that takes long."""
    folder = tmp_path_factory.mktemp("studies")
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")

    def one_model(settings: dict[str, Any], name: str, **slow: float) -> None:
        torch.manual_seed(0)
        model = settings["models"]["vit"]
        if slow:
            model |= {"family": "python", "arch": {"file": "slow.py", "make": "Slow", **slow}}
            network = find_family("python").build(
                model["arch"] | {"file": str(folder / "slow.py")}, 10, 32
            )
        else:
            network = find_family("vit").build(model["arch"], 10, 32)
        torch.save({"state_dict": network.state_dict()}, folder / f"{name}.pth.tar")
        model["checkpoint"] = {"path": str(folder / f"{name}.pth.tar")}
        del settings["models"]["resnet"]
        settings["figures"]["fig9"]["models"] = ["vit"]

    def sharded(settings: dict[str, Any]) -> None:
        settings["analysis"]["shard_size"] = 4
        # A shard takes longer than it takes to kill a run and to look what it left.
        one_model(settings, "sharded", seconds=10)

    def large(settings: dict[str, Any]) -> None:
        one_model(settings, "large")
        own = {"file": "slow.py", "make": "Slow", "megabytes": MEGABYTES}
        settings["models"]["vit"] |= {"family": "python", "arch": own, "checkpoint": {"made": True}}
        settings["data"]["shapes32"]["splits"]["test"]["images"] = 64
        settings["analysis"] |= {"images": 64, "shard_size": 64, "batch_size": 64}

    def long(settings: dict[str, Any]) -> None:
        # Four steps an epoch, of a quarter of a second each.
        one_model(settings, "long", seconds_of_training=0.25)
        settings["training"] |= {"epochs": 90, "trajectory": True, "snapshots": [3, 80]}

    assert len(SETTINGS["models"]) == 2
    write_study(folder / "sharded.yaml", sharded)
    write_study(folder / "large.yaml", large)
    write_study(folder / "long.yaml", long)
    return folder


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    return copy_workflow(tmp_path_factory.mktemp("local") / "copy", studies)


@pytest.fixture
def remote(tmp_path: Path, studies: Path) -> Workflow:
    return copy_workflow(tmp_path / "copy", studies)
