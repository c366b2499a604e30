"""A study of every kind of figure, on networks and images as small as can be."""

from pathlib import Path
from typing import Any

import torch

from tests.runs.copies import SETTINGS, write_study
from vitscope.drawing.kinds import KINDS
from vitscope.networks.family import find_family

NAME = "everything"
# One kind at least for every kind of file that lies between the data and a figure.
SOME = ("feature_variance", "reliability", "fit")


def targets(kinds: tuple[str, ...]) -> list[str]:
    """Return what it takes to make all of a study with these kinds of figures."""
    return [*(f"figures/{NAME}/{kind}.pdf" for kind in kinds), f"results/{NAME}/run.yaml"]


def write_weights(folder: Path) -> dict[str, Path]:
    """Write the weights of a ViT at three moments, as others would have saved them."""
    paths = {}
    for seed, moment in enumerate(("init", "warmup", "end")):
        torch.manual_seed(seed)
        network = find_family("vit").build(SETTINGS["models"]["vit"]["arch"], 10, 32)
        paths[moment] = folder / f"{moment}.pth.tar"
        torch.save({"state_dict": network.state_dict()}, paths[moment])
    return paths


def write_everything(folder: Path, weights: dict[str, Path], kinds: tuple[str, ...]) -> None:
    """Write the study, with a figure of each of some kinds."""

    def change(settings: dict[str, Any]) -> None:
        vit = settings["models"]["vit"]
        vit["checkpoint"] = {"path": str(weights["end"])}
        vit["snapshots"] = {name: {"path": str(weights[name])} for name in ("init", "warmup")}
        settings["models"] = {"vit": vit}
        settings["data"]["shapes32"]["splits"]["conflict"] = {"images": 16}
        settings["analysis"] |= {
            "shard_size": 8,
            "cka": {"batch_size": 4},
            "keep_latents": True,
            "robustness": {"images": 4, "corruptions": ["fog", "jpeg_compression"]},
            "augmented": {"images": 16},
            "fit": {"images": 16},
            "lesion": {"images": 8},
            "frequency_noise": {"images": 8},
            "landscape": {"points": 3, "rows_per_job": 2, "precision": "float32"},
            "hessian": {"batches": 2, "batch_size": 8, "batches_per_job": 1, "top": 1},
        }
        settings["figures"] = {
            kind: {"kind": kind, "models": ["vit"]}
            | ({"snapshots": ["end"]} if KINDS[kind].snapshots else {})
            for kind in kinds
        }

    write_study(folder / f"{NAME}.yaml", change)
