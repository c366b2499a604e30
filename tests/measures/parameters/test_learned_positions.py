"""Similarity of position embeddings: the authors' values, torch, and closed forms."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.golden import Golden
from tests.helpers.networks import described, mini
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnNetwork
from vitscope.measures.parameters.learned_positions import (
    measure_position_bias,
    measure_position_similarity,
    neighbouring_positions,
    position_similarities,
)
from vitscope.measures.parameters.measure import POSITION_BIAS_TABLE, POSITION_SIMILARITY_TABLE

EMBEDDING = np.random.default_rng(0).normal(size=(6, 4, 5))


def test_dot_products_of_the_golden_network(golden: Golden) -> None:
    expected = golden.attention["position_dot_product_rows_0_17"]
    given = OnNetwork("vit_ti", golden.model("vit_ti"), described())
    table = measure_position_similarity(given, positions=2048)
    assert len(table) == 256
    assert set(table["embedding"]) == {"pos_embed"}
    for number, row in zip((0, 17), expected, strict=True):
        np.testing.assert_allclose(table["products"][number], row, rtol=1e-4, atol=1e-6)
    # Row by row, sixteen in a row.
    assert table.loc[17, ["row", "column"]].tolist() == [1, 1]


def test_cosines_are_those_of_torch() -> None:
    products, cosines = position_similarities(EMBEDDING)
    vectors = torch.from_numpy(EMBEDDING).flatten(1).T
    expected = nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    np.testing.assert_allclose(cosines, expected, rtol=1e-12)
    np.testing.assert_allclose(products, vectors @ vectors.T, rtol=1e-12)
    np.testing.assert_allclose(cosines.diagonal(), 1, rtol=1e-12)


def test_an_embedding_of_zeros_is_like_no_other() -> None:
    spoiled = EMBEDDING.copy()
    spoiled[:, 1, 2] = 0
    _, cosines = position_similarities(spoiled)
    zero = 1 * 5 + 2
    assert np.isnan(cosines[zero]).all()
    assert np.isnan(cosines).sum() == 2 * 20 - 1


def test_neighbours_of_a_grid() -> None:
    found = neighbouring_positions(3, 4)
    assert (found == found.T).all()
    # In the corners two, at the edges three, inside four.
    assert found.sum(1).tolist() == [2, 3, 3, 2, 3, 4, 4, 3, 2, 3, 3, 2]
    assert np.flatnonzero(found[5]).tolist() == [1, 4, 6, 9]


class Adding(nn.Module):
    def __init__(self, embedding: np.ndarray) -> None:
        super().__init__()
        channels, height, width = embedding.shape
        self.patches = nn.Conv2d(
            3, channels, (20 // height, 20 // width), (20 // height, 20 // width)
        )
        self.where = nn.Parameter(torch.from_numpy(embedding).float())
        self.head = nn.Linear(channels, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head((self.patches(images) + self.where).relu().mean((2, 3)))


def measured(embedding: np.ndarray, positions: int = 2048):
    return measure_position_similarity(OnNetwork("m", Adding(embedding), described(20)), positions)


def test_the_table(tmp_path) -> None:
    table = measured(EMBEDDING)
    _, cosines = position_similarities(EMBEDDING.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(np.stack(table["cosines"]), cosines, rtol=1e-6, atol=1e-7)
    assert table[["height", "width", "step"]].drop_duplicates().to_numpy().tolist() == [[4, 5, 1]]
    np.testing.assert_allclose(table["norm"], np.linalg.norm(EMBEDDING, axis=0).ravel(), rtol=1e-6)
    assert table["to_neighbours"][0] == pytest.approx(cosines[0, [1, 5]].mean(), rel=1e-6)
    assert table["to_others"][7] == pytest.approx((cosines[7].sum() - 1) / 19, rel=1e-6)
    POSITION_SIMILARITY_TABLE.write(table, tmp_path / "table.parquet")
    assert len(POSITION_SIMILARITY_TABLE.read(tmp_path / "table.parquet")) == 20


def test_of_many_positions_some_rows_and_columns_are_compared() -> None:
    table = measured(EMBEDDING, positions=6)
    thin = EMBEDDING[:, ::2, ::2]
    assert table[["height", "width", "step"]].drop_duplicates().to_numpy().tolist() == [[2, 3, 2]]
    _, cosines = position_similarities(thin)
    np.testing.assert_allclose(np.stack(table["cosines"]), cosines, rtol=1e-5)


def test_embeddings_of_zeros_have_products_and_no_cosines() -> None:
    table = measured(np.zeros((6, 4, 5)))
    assert np.stack(table["products"]).tolist() == np.zeros((20, 20)).tolist()
    assert table[["to_neighbours", "to_others"]].isna().all(axis=None)


def test_what_is_wrong_is_told() -> None:
    spoiled = EMBEDDING.copy()
    spoiled[0, 0, 0] = np.nan
    with pytest.raises(VitscopeError, match=r"models\.m: the position embedding 'where' is not"):
        measured(spoiled)
    model, _ = mini("resnet")
    with pytest.raises(VitscopeError, match=r"^models\.resnet: the network has no position"):
        measure_position_similarity(OnNetwork("resnet", model, described()), 2048)


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
    POSITION_BIAS_TABLE.write(table, tmp_path / "table.parquet")
    back = POSITION_BIAS_TABLE.read(tmp_path / "table.parquet")
    assert back["head"].tolist() == table["head"].tolist()


def test_of_alternet_all_heads_have_one(tmp_path) -> None:
    model, _ = mini("alternet")
    table = measure_position_bias(OnNetwork("alternet", model, described()))
    assert table["layer"].tolist() == [0, 1, 2, 3]
    assert table["head"].isna().all()
    POSITION_BIAS_TABLE.write(table, tmp_path / "table.parquet")
    assert POSITION_BIAS_TABLE.read(tmp_path / "table.parquet")["head"].isna().all()


def test_networks_without_one_are_told() -> None:
    model, _ = mini("vit")
    with pytest.raises(VitscopeError, match=r"^models.vit: the network has no relative position b"):
        measure_position_bias(OnNetwork("vit", model, described()))
