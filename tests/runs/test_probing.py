"""The study `probing` from end to end: random weights of its networks, from a server of one's own.

The published weights are not looked at: what is tested is that each of its seven files is found at
its address, fits its network, and ends in every figure.
"""

import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
import yaml
from PIL import Image
from torch import Tensor

from tests.helpers.hub import Hub, running_hub
from tests.helpers.web import Site, running_site, whole
from tests.runs.copies import REPOSITORY, copy_workflow
from vitscope.networks.building.family import find_family
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.checkpoints import weight_sources

STUDY = yaml.safe_load((REPOSITORY / "config/studies/probing.yaml").read_text(encoding="utf-8"))


def weights(model: dict[str, Any], seed: int) -> dict[str, Tensor]:
    """Return weights of the size of published ones, in half precision to be quick."""
    torch.manual_seed(seed)
    network = find_family("vit").build(model["arch"], classes_of(model), 224)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.04)
    return {name: tensor.half() for name, tensor in network.state_dict().items()}


def classes_of(model: dict[str, Any]) -> int | None:
    """Return how many classes the published weights tell apart."""
    timm = import_timm()
    tag = model["checkpoint"].get("timm")
    return timm.models.get_pretrained_cfg(tag).num_classes or None if tag else None


def moco(plain: dict[str, Tensor]) -> bytes:
    """Return a file as MoCo v3 has it: two networks, and what is on top of each."""
    state = {}
    for network in ("base_encoder", "momentum_encoder"):
        state |= {f"module.{network}.{name}": tensor for name, tensor in plain.items()}
        state[f"module.{network}.head.0.weight"] = torch.ones(4, 4)
    state["module.predictor.0.weight"] = torch.ones(4, 4)
    written = io.BytesIO()
    torch.save({"epoch": 300, "arch": "vit_base", "state_dict": state}, written)
    return written.getvalue()


def serve_pictures(site: Site, study: dict[str, Any]) -> None:
    """Serve a photograph that is wider than high, and a short video, by names without an ending."""
    pixels = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    photograph, video = io.BytesIO(), io.BytesIO()
    Image.fromarray(pixels).save(photograph, "PNG")
    others = [Image.fromarray(np.roll(pixels, 9 * number, 1)) for number in (1, 2)]
    Image.fromarray(pixels).save(video, "GIF", save_all=True, append_images=others)
    url = site.at("/img", whole(photograph.getvalue()))
    study["data"]["photograph"]["source"]["url"] = url
    for each in study["videos"].values():
        each["source"] = {"url": site.at("/horse", whole(video.getvalue()))}


def serve(site: Site, hub: Hub, study: dict[str, Any]) -> None:
    """Serve all checkpoints, those of timm from a hub."""
    serve_pictures(site, study)
    for seed, model in enumerate(study["models"].values()):
        checkpoint = model["checkpoint"]
        if "timm" in checkpoint:
            path = urlsplit(weight_sources.address(checkpoint)).path
            hub.files[path] = safetensors.torch.save(weights(model, seed))
        else:
            path = urlsplit(checkpoint["url"]).path
            checkpoint["url"] = site.at(path, whole(moco(weights(model, seed))))


@pytest.mark.nightly
def test_every_network_is_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "studies").mkdir()
    workflow = copy_workflow(tmp_path / "copy", tmp_path / "studies")
    cache = tmp_path / "hub"
    with running_site() as site, running_hub(cache, monkeypatch) as hub:
        study = dict(STUDY)
        serve(site, hub, study)
        path = tmp_path / "studies/probed.yaml"
        path.write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
        of_hub = {"HF_ENDPOINT": hub.root, "HF_HUB_CACHE": str(cache), "HF_HUB_DISABLE_XET": "1"}
        run = workflow.start("--cores", "2", "figures/probed/all", extra=of_hub)
        assert run.wait(timeout=3600) == 0
    for figure in study["figures"]:
        assert (workflow.root / "figures/probed" / f"{figure}.pdf").is_file()
    for video in study["videos"]:
        with Image.open(workflow.root / "figures/probed" / f"{video}.webp") as shown:
            assert shown.n_frames == 3
    lock = yaml.safe_load((tmp_path / "studies/probed.lock.yaml").read_text(encoding="utf-8"))
    assert {study["data"]["photograph"]["source"]["url"]} < {*lock}
    maps = pd.read_parquet(workflow.root / "results/probed/tables/attention_maps.parquet")
    named = maps.groupby("model")["class_name"].first()
    assert named.notna().to_dict() == {
        name: "classes" not in model for name, model in study["models"].items()
    }
    claims = pd.read_parquet(workflow.root / "results/probed/tables/claims.parquet")
    compared = claims[claims["versus"].notna()].set_index("claim")[["model", "versus"]]
    assert [*compared.loc["more_images_look_farther"].iloc[0]] == ["vit_in21k", "vit_in1k"]
    assert [*compared.loc["distillation_looks_nearer"].iloc[0]] == ["deit_distilled", "deit"]
    table = pd.read_parquet(workflow.root / "results/probed/tables/attention.parquet")
    assert set(table["model"]) == set(study["models"])
    # Twelve blocks of twelve heads, and the mean of these; two tokens have no place in one of them.
    assert (table.groupby("model").size() == 12 * 13).all()
    tokens = table.groupby("model")["keys"].first()
    assert tokens["deit_distilled"] == 198
    assert (tokens.drop("deit_distilled") == 197).all()
