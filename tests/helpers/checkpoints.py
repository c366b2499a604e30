import os
from pathlib import Path
from typing import Any

import torch

from vitscope.networks.building.networks import find_family

NETWORK: dict[str, Any] = {
    "family": "resnet",
    "arch": {"block": "basic", "blocks": [1, 1, 1, 1], "width": 4},
    "classes": 10,
    "image_size": 32,
    "mean": [0.5, 0.5, 0.5],
}


VIT: dict[str, Any] = {
    "family": "vit",
    "arch": {"patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2},
    "classes": 10,
    "image_size": 32,
    "mean": [0.5, 0.5, 0.5],
}


def saved(path: Path, value: object, **options: Any) -> Path:
    torch.save(value, path, **options)
    return path


def network_weights(network: dict[str, Any] = NETWORK) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return find_family(network["family"]).build(network["arch"], 10, 32).state_dict()


def same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> bool:
    return found.keys() == expected.keys() and all(
        torch.equal(found[name], expected[name]) for name in expected
    )


class Runs:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.witness}",)
