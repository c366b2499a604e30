"""A study of weights as people have them: no classifier, no labels, another library's names."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from tests.runs.copies import SETTINGS, copy_workflow, write_study
from vitscope.networks.building.family import find_family

VIT = SETTINGS["models"]["vit"]
FEATURES = ("feature_variance", "cka", "fourier", "spectrum")


def write_weights(path: Path) -> None:
    """Write a network as DINO does: a student and its average, each with a head."""
    torch.manual_seed(0)
    network = find_family("vit").build(VIT["arch"], None, 32).state_dict()
    network = {f"module.backbone.{name}": value for name, value in network.items()}
    network["module.head.mlp.0.weight"] = torch.ones(4, 24)
    torch.save({"student": network, "teacher": dict(network), "epoch": 3}, path)


@pytest.mark.nightly
def test_a_network_without_a_classifier_is_looked_at_on_images_without_labels(
    tmp_path: Path,
) -> None:
    write_weights(tmp_path / "dino.pth")
    (tmp_path / "images").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (16, 40, 40, 3), np.uint8)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / "images" / f"{number}.png")

    def headless(settings: dict) -> None:
        data = settings["data"]["shapes32"]
        data |= {"source": {"kind": "folder", "path": str(tmp_path / "images")}, "classes": None}
        data["splits"] = {"test": {}}
        checkpoint = {"path": str(tmp_path / "dino.pth"), "ignore": ["module.head.*"]}
        settings["models"] = {"vit": VIT | {"checkpoint": checkpoint}}
        settings["figures"] = {kind: {"kind": kind, "models": ["vit"]} for kind in FEATURES}
        settings["analysis"]["cka"] = {"batch_size": 4}

    (tmp_path / "studies").mkdir()
    write_study(tmp_path / "studies" / "dino.yaml", headless)
    workflow = copy_workflow(tmp_path / "copy", tmp_path / "studies")
    workflow.make("--cores", "2", *(f"figures/dino/{kind}.pdf" for kind in FEATURES))
    log = (workflow.root / "logs/dino/checkpoints/vit.log").read_text(encoding="utf-8")
    assert "those in 'teacher' are read, those in 'student' are not." in log
    table = workflow.root / "results/dino/feature_variance/vit.parquet"
    assert len(pd.read_parquet(table)) == 2 * VIT["arch"]["depth"] + 1
