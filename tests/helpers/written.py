"""The cut points of known networks as people wrote them down, before any were found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from torch import nn

from tests.helpers.networks import build_empty
from vitscope.networks.building.networks import find_family

FOLDER = Path(__file__).parents[1] / "networks" / "expected"
NETWORKS: dict[str, dict[str, Any]] = yaml.safe_load(
    (FOLDER / "written_networks.yaml").read_text(encoding="utf-8")
)
# Small ones, at least one of each family that has dimensions.
SMALL = [name for name, entry in NETWORKS.items() if entry["classes"] == 5]
_POINTS = pd.read_csv(FOLDER / "written_points.csv", keep_default_na=False)


def written_points(network: str) -> pd.DataFrame:
    """Return the cut points of a network: what each is, where a hook reads it, what it costs.

    `branch` is the last module of the branch that joined the stream there, if any.
    """
    return _POINTS[_POINTS["network"] == network].reset_index(drop=True)


def empty(network: str, build: Callable[..., nn.Module] = build_empty) -> nn.Module:
    entry = NETWORKS[network]
    model = build(entry["family"], entry["arch"], entry["classes"], entry["image_size"])
    return model.eval()


def built(network: str) -> nn.Module:
    """Build a network with the random values of its initialization."""
    entry = NETWORKS[network]
    family = find_family(entry["family"])
    return family.build(entry["arch"], entry["classes"], entry["image_size"]).eval()
