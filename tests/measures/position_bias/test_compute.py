"""Relative position biases by layer and head."""

import numpy as np
import pytest
import torch

from tests.helpers.networks import described, mini
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnNetwork
from vitscope.measures.position_bias.compute import measure_position_bias
from vitscope.measures.position_bias.measure import TABLE


def test_of_swin_each_head_has_a_row(tmp_path) -> None:
    model, _ = mini("swin")
    model.requires_grad_(False)
    for name, parameter in model.named_parameters():
        if "bias_table" in name:
            parameter.copy_(torch.randn(parameter.shape))
    table = measure_position_bias(OnNetwork("swin", model, described()))
    assert len(table) == 2 * (1 + 2) + 6 * 4 + 2 * 8
    assert table["layer"].nunique() == 12
    heads = table.groupby("layer")["head"].apply(list)
    assert heads.iloc[[0, 2, 11]].tolist() == [[0], [0, 1], [*range(8)]]
    layer = table[(table["layer"] == 2) & (table["head"] == 1)].iloc[0]
    assert layer["module"] == "layers.1.blocks.0.attn"
    theirs = model.get_submodule(layer["module"]).relative_position_bias_table[:, 1]
    expected = theirs.view(7, 7).flip(0, 1).numpy()
    np.testing.assert_allclose(np.reshape(layer["values"], (7, 7)), expected, rtol=1e-6)
    assert layer["at_itself"] == pytest.approx(expected[3, 3])
    beside = expected[[2, 4, 3, 3], [3, 3, 2, 4]]
    assert layer["to_neighbours"] == pytest.approx(beside.mean())
    assert (layer["lowest"], layer["highest"]) == pytest.approx((expected.min(), expected.max()))
    # The maps of the last stage are smaller than a window.
    assert table[table["layer"] > 9][["height", "width"]].to_numpy().tolist() == [[3, 3]] * 16
    TABLE.write(table, tmp_path / "table.parquet")
    assert TABLE.read(tmp_path / "table.parquet")["head"].tolist() == table["head"].tolist()


def test_of_alternet_all_heads_have_one(tmp_path) -> None:
    model, _ = mini("alternet")
    table = measure_position_bias(OnNetwork("alternet", model, described()))
    assert table["layer"].tolist() == [0, 1, 2, 3]
    assert table["head"].isna().all()
    TABLE.write(table, tmp_path / "table.parquet")
    assert TABLE.read(tmp_path / "table.parquet")["head"].isna().all()


def test_networks_without_one_are_told() -> None:
    model, _ = mini("vit")
    with pytest.raises(VitscopeError, match=r"^models.vit: the network has no relative position b"):
        measure_position_bias(OnNetwork("vit", model, described()))
