"""The study `probing` from end to end: random weights of its networks, from a server of one's own.

The published weights are not looked at: what is tested is that each of its seven files is found at
its address, fits its network, and ends in every figure. Then every figure is of a ViT-S/14 with
real weights and of photographs with masks, and numbers are those of ONNX Runtime.
"""

import io
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from matplotlib.path import Path as Outline
from PIL import Image, ImageDraw
from torch import Tensor

from tests.helpers.dinov2_graph import IMAGENET, Seen, rollout_by_hand, run_graph
from tests.helpers.hub import Hub, running_hub
from tests.helpers.registries import Packages
from tests.helpers.splits import built
from tests.helpers.studies import bundled
from tests.helpers.web import Site, leading_to, running_site, whole
from tests.measures.attention import by_hand
from tests.runs.copies import with_study
from vitscope.claims.tables import CLAIMS
from vitscope.files.strict_yaml import load_yaml
from vitscope.jobs.tables import find_table
from vitscope.networks.building.networks import find_family
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.checkpoints import weight_sources


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
    serve_pictures(site, study)
    for seed, model in enumerate(study["models"].values()):
        checkpoint = model["checkpoint"]
        if "timm" in checkpoint:
            path = urlsplit(weight_sources.address(checkpoint)).path
            hub.put_at(path, safetensors.torch.save(weights(model, seed)))
        else:
            path = urlsplit(checkpoint["url"]).path
            checkpoint["url"] = site.at(path, whole(moco(weights(model, seed))))


@pytest.mark.nightly
def test_every_network_is_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, cache = bundled("probing"), tmp_path / "hub"
    with running_site() as site, running_hub(cache, monkeypatch) as hub:
        serve(site, hub, study)
        workflow = with_study(tmp_path, "probed", study)
        of_hub = {"HF_ENDPOINT": hub.root, "HF_HUB_CACHE": str(cache), "HF_HUB_DISABLE_XET": "1"}
        run = workflow.start("--cores", "2", "figures/probed/all", extra=of_hub)
        assert run.wait(timeout=3600) == 0
    for figure in study["figures"]:
        assert (workflow.root / "figures/probed" / f"{figure}.pdf").is_file()
    for video in study["videos"]:
        with Image.open(workflow.root / "figures/probed" / f"{video}.webp") as shown:
            assert shown.n_frames == 3
    lock = load_yaml(tmp_path / "studies/probed.lock.yaml")
    assert {study["data"]["photograph"]["source"]["url"]} < {*lock}
    maps, claims, table = (
        pd.read_parquet(workflow.root / f"results/probed/tables/{name}.parquet")
        for name in ("attention_maps", "claims", "attention")
    )
    named = maps.groupby("model")["class_name"].first()
    assert named.notna().to_dict() == {
        name: "classes" not in model for name, model in study["models"].items()
    }
    compared = claims[claims["versus"].notna()].set_index("claim")[["model", "versus"]]
    assert [*compared.loc["more_images_look_farther"].iloc[0]] == ["vit_in21k", "vit_in1k"]
    assert [*compared.loc["distillation_looks_nearer"].iloc[0]] == ["deit_distilled", "deit"]
    assert set(table["model"]) == set(study["models"])
    # Twelve blocks of twelve heads, and the mean of these; two tokens have no place in one of them.
    assert (table.groupby("model").size() == 12 * 13).all()
    tokens = table.groupby("model")["keys"].first()
    assert tokens["deit_distilled"] == 198
    assert (tokens.drop("deit_distilled") == 197).all()


# Rows and columns of patches of 14 pixels.
GRID = 16
# Photographs of the package foolbox by their names, and where their subjects lie: corners that were
# drawn by hand, in percent of the side.
SUBJECTS = {
    "imagenet_06_609": "22,37 28,28 52,26 65,37 80,40 80,57 63,61 46,66 37,58 22,54",
    "imagenet_09_455": "8,42 21,20 43,15 73,20 88,33 90,57 78,81 56,90 26,81 10,66",
    "imagenet_17_22": "1,28 22,23 46,41 52,50 63,50 74,39 83,27 100,23 100,43 57,70 43,60 13,54",
    "imagenet_19_305": "26,60 30,47 47,32 60,26 73,30 80,41 73,50 63,54 52,65 39,70 19,67",
}


def put_photographs(packages: Packages, folder: Path) -> None:
    folder.mkdir()
    for name, corners in SUBJECTS.items():
        file = packages.unpacked("foolbox==3.3.4") / "foolbox" / "data" / f"{name}.jpg"
        shutil.copy(file, folder)
        with Image.open(file) as photograph:
            mask = Image.new("L", photograph.size)
        places = [[float(each) / 100 for each in corner.split(",")] for corner in corners.split()]
        ImageDraw.Draw(mask).polygon(
            [(x * mask.width, y * mask.height) for x, y in places], fill=255
        )
        mask.save(folder / f"{name}.mask.png")


def of_one_network(
    study: dict[str, Any], folder: Path, url: str, horse: dict[str, str]
) -> dict[str, Any]:
    """Return the study of photographs in a folder, each figure and video of one network."""
    study["data"]["photograph"] |= {
        "source": {"kind": "folder", "path": str(folder)},
        "splits": {"test": {"images": len(SUBJECTS), "seed": None}},
    }
    study["models"] = {
        "vit_s": {
            "label": "ViT-S/14",
            "family": "vit",
            "arch": {"name": "vit_small_patch14_dinov2"},
            "data": "photograph",
            "classes": None,
            "checkpoint": {"url": url},
        }
    }
    study["analysis"]["images"] = len(SUBJECTS)
    for section in ("attention_rollout", "attention_maps"):
        study["analysis"][section]["images"] = len(SUBJECTS)
    for figure in study["figures"].values():
        figure["models"] = ["vit_s"]
        # These points are of other networks.
        figure.pop("published", None)
    for video in study["videos"].values():
        video |= {"model": "vit_s", "source": horse}
    return study


def moving(photograph: Path) -> bytes:
    """Return a short video, of what a camera sees that moves over a photograph."""
    with Image.open(photograph) as image:
        frames = [image.crop((left, 100, left + 300, 400)) for left in (0, 60, 120)]
    written = io.BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:])
    return written.getvalue()


@pytest.mark.nightly
def test_real_weights_are_probed(packages: Packages, tmp_path: Path) -> None:
    photographs = tmp_path / "photographs"
    put_photographs(packages, photographs)
    source = {"kind": "folder", "path": str(photographs)}
    images = built(tmp_path / "split", source, classes=None, image_size=224, resize=[256, 256])
    rows = [*range(len(SUBJECTS))]
    seen = run_graph(packages, images.normalize(rows, **IMAGENET))
    file = io.BytesIO()
    torch.save(seen.weights, file)
    with running_site() as site, running_site() as storage:
        url = site.at("/vit_s.pth", leading_to(storage, "/asset", whole(file.getvalue())))
        video = {"url": site.at("/horse", whole(moving(photographs / "imagenet_17_22.jpg")))}
        study = of_one_network(bundled("probing"), photographs, url, video)
        workflow = with_study(tmp_path, "real", study)
        workflow.make("--cores", "2", "figures/real/all", default="real")
    for figure in study["figures"]:
        assert (workflow.root / f"figures/real/{figure}.pdf").read_bytes().startswith(b"%PDF")
    for name in study["videos"]:
        with Image.open(workflow.root / f"figures/real/{name}.webp") as shown:
            assert shown.n_frames == 3
    tables = {
        name: find_table(name).read(workflow.root / f"results/real/tables/{name}.parquet")
        for name in ("attention", "attention_rollout", "attention_maps", "position_similarity")
    }
    hold_numbers(tables, seen)
    hold_subjects(tables, seen, np.array([images.mask(row) for row in rows]))
    claims = CLAIMS.read(workflow.root / "results/real/tables/claims.parquet")
    on_subjects = claims[claims["claim"].str.endswith("_at_the_subject")].set_index("figure")
    # One head of six looks elsewhere, in every image.
    assert on_subjects[["measured_count", "measured_total"]].T.to_dict("list") == {
        "attention_rollout": [4, 4],
        "attention_heads": [20, 24],
        "rollout_times_image": [4, 4],
        "dino_heads": [20, 24],
    }


def hold_numbers(tables: dict[str, pd.DataFrame], seen: Seen) -> None:
    """Hold tables against what follows from the attention and weights that ONNX Runtime has."""
    attention, rows = tables["attention"], range(len(SUBJECTS))
    assert len(attention) == 12 * (6 + 1)
    assert (attention["keys"] == 1 + GRID**2).all()
    of_heads = attention.dropna(subset="head").set_index(["attention", "head"]).sort_index()
    places = by_hand.grid(GRID, 14).reshape(1, -1, 2)
    for block, weights in enumerate(seen.attention):
        for name, expected in by_hand.Seen(weights[:, None], places, 1).numbers().items():
            found = of_heads.loc[block, name]
            np.testing.assert_allclose(found, expected, rtol=2e-4, err_msg=f"{block} {name}")
    rollouts = tables["attention_rollout"].sort_values("image")["rollout"]
    for row, rollout in zip(rows, rollouts, strict=True):
        expected = rollout_by_hand(seen.attention[:, row])
        np.testing.assert_allclose(rollout, expected, rtol=0, atol=1e-4)
    positions = seen.weights["pos_embed"][0, 1:].double().numpy()
    unit = positions / np.linalg.norm(positions, axis=1, keepdims=True)
    similarity = tables["position_similarity"].sort_values(["row", "column"])
    cosines = np.array(similarity["cosines"].tolist())
    np.testing.assert_allclose(cosines, unit @ unit.T, rtol=0, atol=1e-5)


def hold_subjects(tables: dict[str, pd.DataFrame], seen: Seen, masks: np.ndarray) -> None:
    """Hold shares on subjects against masks, and these against the corners that were drawn."""
    # The middle 224 of 256 pixels are taken.
    middles = (np.arange(224) + 0.5 + 16) / 256 * 100
    places = np.stack(np.meshgrid(middles, middles), -1).reshape(-1, 2)
    for corners, mask in zip(SUBJECTS.values(), masks, strict=True):
        outline = Outline(np.array([each.split(",") for each in corners.split()], float))
        inside = outline.contains_points(places).reshape(224, 224)
        assert 0.1 < inside.mean() < 0.7
        assert np.abs(mask - inside).mean() < 0.01
    covered = masks.reshape(-1, GRID, 14, GRID, 14).mean((2, 4)).reshape(len(SUBJECTS), -1)
    rollouts = tables["attention_rollout"].set_index("image")
    maps = tables["attention_maps"]
    heads = maps[maps["shows"] == "heads"].set_index(["image", "head"])
    assert len(heads) == len(SUBJECTS) * 6
    for row, places in enumerate(covered):
        rollout = rollout_by_hand(seen.attention[:, row])
        expected = [rollout @ places / rollout.sum(), places.mean()]
        assert rollouts.loc[row, ["on_subject", "subject"]].tolist() == pytest.approx(
            expected, rel=1e-3
        )
        for head, weights_of_class in enumerate(seen.attention[-1, row, :, 0, 1:]):
            share = weights_of_class @ places / weights_of_class.sum()
            assert heads.loc[(row, head), "on_subject"] == pytest.approx(share, rel=1e-3)
