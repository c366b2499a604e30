"""Networks of all families, as small as the bundled study builds them."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import nn

from vitscope.networks.cut_points import CutPoint
from vitscope.networks.family import find_family

STUDY = Path(__file__).parents[2] / "config" / "studies" / "mini.yaml"
MINI: dict[str, dict[str, Any]] = yaml.safe_load(STUDY.read_text(encoding="utf-8"))["models"]
every_mini = pytest.mark.parametrize("name", MINI)


def mini(name: str, seed: int = 0) -> tuple[nn.Module, list[CutPoint]]:
    """Return a model of the bundled study with random weights, and its cut points."""
    torch.manual_seed(seed)
    family = find_family(MINI[name]["family"])
    model = family.build(MINI[name]["arch"], 10, 32).eval()
    return model, family.cut_points(model)
