"""One model of every module of timm that builds networks: its cut points, by kind, or a refusal."""

import pandas as pd
import pytest
import torch

from tests.helpers.networks import described
from tests.helpers.written import FOLDER
from vitscope.errors import VitscopeError
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.cut_points import BLOCKS, read_points, write_points

MODULES = pd.read_csv(FOLDER / "modules.csv", index_col="module")
KINDS = ["stem", "conv", "msa", "mlp", "pool"]


def test_of_most_modules_cut_points_are_found() -> None:
    assert len(MODULES) == 98
    assert MODULES["model"].is_unique
    assert (MODULES["stem"] == 1).sum() == 89


@pytest.mark.nightly
@pytest.mark.parametrize("module", MODULES.index)
def test_a_network_of_every_module(module: str) -> None:
    expected = MODULES.loc[module]
    with torch.device("meta"):
        model = import_timm().create_model(expected["model"])
    network = described(int(expected["image_size"]))
    if expected["stem"] == 0:
        with pytest.raises(VitscopeError, match=r"as `points`\.$"):
            list_blocks("mine", model, network)
        return
    blocks = list_blocks("mine", model, network)
    kinds = blocks.table["kind"].value_counts()
    joins = [point.join for point in blocks.points if point.join]
    found = {kind: kinds.get(kind, 0) for kind in KINDS}
    found |= {"joins": len(joins), "unchanged": sum(join.identity for join in joins)}
    assert found == expected[[*found]].to_dict()
    assert blocks.table["name"].is_unique
    assert blocks.table.columns.tolist() == list(BLOCKS.columns)
    assert (blocks.table[["channels", "height", "width"]] > 0).all(axis=None)
    assert blocks.table["stage"].is_monotonic_increasing
    assert read_points(write_points(blocks.points)) == blocks.points
    total = sum(parameter.numel() for parameter in model.parameters())
    assert blocks.table["parameters"].sum() + blocks.head.parameters <= total
