"""The golden folder: weights that anyone can rebuild, and what the authors' code makes of them."""

import importlib.util
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from tests.helpers.networks import build_undrawn
from tests.helpers.studies import bundled
from vitscope.networks.building import networks as models
from vitscope.networks.building.networks import Family, find_family
from vitscope.networks.checkpoints.translation import translate

PAPER = bundled("paper")["models"]
# Of models of the study of the paper, and of one that has no published weights.
ARCHS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (PAPER[name]["family"], PAPER[name]["arch"])
    for name in ("resnet_50", "vit_ti", "pit_ti", "swin_ti")
} | {"alternet_50": ("alternet", {"depth": 50})}
MEAN = np.array((0.5071, 0.4867, 0.4408), np.float32)
STD = np.array((0.2675, 0.2565, 0.2761), np.float32)


@dataclass(frozen=True)
class Golden:
    """Access to the golden folder."""

    shared: Path

    @property
    def expected(self) -> dict[str, Any]:
        return json.loads((self.shared / "golden" / "expected.json").read_text())

    @property
    def attention(self) -> dict[str, Any]:
        """Numbers of attention, position embeddings and filters of `vit_ti`."""
        text = (self.shared / "golden" / "attention.json").read_text(encoding="utf-8")
        return json.loads(text)["vit_ti"]

    def state_dict(self, name: str) -> dict[str, Tensor]:
        """Return the weights in the published layout."""
        path = self.shared / "golden" / "make_checkpoint.py"
        spec = importlib.util.spec_from_file_location("make_checkpoint", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.state_dict(name)

    def family(self, name: str) -> Family:
        return find_family(ARCHS[name][0])

    def model(self, name: str) -> nn.Module:
        """Return the model with the published layout loaded, every key used."""
        model = build_undrawn(*ARCHS[name], num_classes=100, image_size=32)
        return models.fill(model, translate(self.state_dict(name), model).weights)

    def images(self, count: int) -> tuple[Tensor, Tensor]:
        """Return the first test images of CIFAR-100, normalised, and their classes."""
        frame = pd.read_parquet(self.shared / "data" / "cifar100" / "test.parquet").head(count)
        images = [np.asarray(Image.open(io.BytesIO(row["bytes"]))) for row in frame["img"]]
        pixels = (np.stack(images).astype(np.float32) / 255 - MEAN) / STD
        labels = torch.tensor(frame["fine_label"].to_numpy())
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous(), labels
