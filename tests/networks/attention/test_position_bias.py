from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.kinds import timm, torchvision_swin
from tests.helpers.networks import described, mini
from tests.helpers.refusals import refusal
from vitscope.networks.attention.found_weights import (
    PositionBias,
    bias_weights_by_offset,
    position_bias_weights,
)

RNG = np.random.default_rng(0)
IMAGE = (64, 96)


def of_pairs(table: np.ndarray, prefix: int = 0) -> np.ndarray:
    """What a table of offsets (heads, 2h - 1, 2w - 1) says of each query and key, one by one."""
    heads, down, right = table.shape
    rows, columns = (down + 1) // 2, (right + 1) // 2
    tokens = prefix + rows * columns
    biases = RNG.normal(size=(heads, tokens, tokens))
    for query in range(rows * columns):
        for key in range(rows * columns):
            one, other = divmod(query, columns), divmod(key, columns)
            offset = other[0] - one[0] + rows - 1, other[1] - one[1] + columns - 1
            biases[:, prefix + query, prefix + key] = table[:, *offset]
    return biases


@pytest.mark.parametrize(
    ("shape", "prefix"),
    [
        *((shape, 0) for shape in ((3, 7, 7), (1, 5, 9), (2, 9, 5), (2, 3, 3), (2, 1, 9))),
        *(((2, 9, 9), prefix) for prefix in (1, 2, 5, 8)),
        *(((2, 7, 11), prefix) for prefix in (1, 2)),
    ],
)
def test_a_table_comes_back(shape: tuple[int, ...], prefix: int) -> None:
    table = RNG.normal(size=shape)
    np.testing.assert_array_equal(bias_weights_by_offset(of_pairs(table, prefix), IMAGE), table)


def test_what_is_no_bias_by_offset_is_none() -> None:
    assert bias_weights_by_offset(RNG.normal(size=(2, 16, 16)), IMAGE) is None
    # All alike, as biases that were never trained.
    assert bias_weights_by_offset(np.zeros((2, 16, 16)), IMAGE) is None
    spoiled = of_pairs(RNG.normal(size=(2, 7, 7)))
    spoiled[0, 3, 2] = np.inf
    assert bias_weights_by_offset(spoiled, IMAGE) is None
    # A single pair that is another.
    changed = of_pairs(RNG.normal(size=(2, 7, 7)))
    changed[1, 3, 2] += 0.01
    assert bias_weights_by_offset(changed, IMAGE) is None


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_masks_of_shifted_windows_are_none(shift: int) -> None:
    """Of windows of 7x7, where the last rows and columns come from the other side."""
    for rows, columns in ((0, shift), (shift, 0), (shift, shift)):
        region = np.zeros((7, 7))
        region[7 - rows :] += 1
        region[:, 7 - columns :] += 2
        flat = region.ravel()
        mask = np.where(flat[:, None] != flat, -100.0, 0.0)
        assert bias_weights_by_offset(mask[None], IMAGE) is None
        # Nor what is added to a bias.
        assert bias_weights_by_offset(of_pairs(RNG.normal(size=(2, 13, 13))) + mask, IMAGE) is None


def check_tables(found: list[PositionBias], tables: Iterable[Tensor]) -> None:
    """Theirs are by the offset from the key to the query."""
    for each, table in zip(found, tables, strict=True):
        side = each.values.shape[1]
        theirs = table.detach().T.reshape(-1, side, side).flip(1, 2)
        np.testing.assert_allclose(each.values, theirs, rtol=1e-6)


def test_of_swin_it_is_the_table_that_it_holds() -> None:
    model, _ = mini("swin")
    for name, parameter in model.named_parameters():
        if name.endswith("relative_position_bias_table"):
            parameter.data = torch.randn_like(parameter)
    found = position_bias_weights(model, described())
    tables = {n: p for n, p in model.named_parameters() if "bias_table" in n}
    assert [f"{each.module}.relative_position_bias_table" for each in found] == [*tables]
    assert [len(each.values) for each in found] == [1, 1, 2, 2, 4, 4, 4, 4, 4, 4, 8, 8]
    assert not any(each.shared for each in found)
    check_tables(found, tables.values())


def test_of_alternet_all_heads_share_the_table_that_it_holds() -> None:
    model, _ = mini("alternet")
    found = position_bias_weights(model, described())
    tables = {n: p for n, p in model.named_parameters() if "pos_embedding" in n}
    assert len(found) == len(tables) == 4
    assert all(each.shared for each in found)
    for each, table in zip(found, tables.values(), strict=True):
        np.testing.assert_allclose(each.values[0], table.detach(), rtol=1e-6)


@pytest.mark.parametrize("name", ["resnet", "vit", "pit", "mixer"])
def test_families_without_one(name: str) -> None:
    model, _ = mini(name)
    assert refusal(position_bias_weights, model, described()) == (
        "the network has no relative position bias: it adds nothing to the products of queries and "
        "keys that depends on the offset between two positions alone."
    )


def drawn(model: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in model.parameters():
        parameter.data = 0.1 * torch.randn_like(parameter)
    return model.eval()


@pytest.mark.parametrize("way", ["added", "fused", "scaled", "as many as images"])
def test_however_it_is_added(way: str) -> None:
    table = RNG.normal(size=(2, 5, 5)).astype(np.float32)
    bias = torch.from_numpy(of_pairs(table)).float()

    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches, self.head = nn.Conv2d(3, 8, 4, 4), nn.Linear(8, 5)
            self.bias = nn.Parameter(bias)

        def attended(self, each: Tensor) -> Tensor:
            if way == "fused":
                fused = nn.functional.scaled_dot_product_attention
                return fused(each, each, each, attn_mask=self.bias[None])
            if way == "as many as images":
                flat = each.flatten(0, 1)
                added = self.bias.repeat(len(each), 1, 1)
                return ((flat @ flat.mT + added).softmax(-1) @ flat).unflatten(0, each.shape[:2])
            logits = each @ each.mT
            logits = logits / 2 + self.bias if way == "scaled" else logits + self.bias
            return logits.softmax(-1) @ each

        def forward(self, images: Tensor) -> Tensor:
            tokens = self.patches(images).flatten(2).mT
            heads = tokens.unflatten(2, (2, 4)).transpose(1, 2)
            return self.head((tokens + self.attended(heads).transpose(1, 2).flatten(2)).mean(1))

    model: Any = drawn(Attending())
    model.bias.data = bias
    (found,) = position_bias_weights(model, described(12))
    np.testing.assert_allclose(found.values, table, rtol=1e-6)
    assert not found.shared


@pytest.mark.parametrize(
    ("name", "keywords", "size", "shapes"),
    [
        # Seven by seven positions, the class token before them.
        ("beit_base_patch16_224", {"embed_dim": 12, "depth": 1, "num_heads": 3, "img_size": 112},
         112, [(3, 13, 13)]),
        # From a network of the offset.
        ("swinv2_tiny_window8_256",
         {"embed_dim": 12, "depths": (2, 1), "num_heads": (2, 3), "img_size": 64, "window_size": 4},
         64, [(2, 7, 7)] * 2 + [(3, 7, 7)]),
        ("vit_relpos_small_patch16_224",
         {"embed_dim": 12, "depth": 1, "num_heads": 3, "img_size": 64}, 64, [(3, 7, 7)]),
    ],
)  # fmt: skip
def test_networks_of_timm(
    name: str, keywords: dict[str, Any], size: int, shapes: list[tuple[int, ...]]
) -> None:
    found = position_bias_weights(drawn(timm(name, **keywords)), described(size))
    assert [each.values.shape for each in found] == shapes


def test_of_beit_it_is_the_table_that_it_holds() -> None:
    keywords = {"embed_dim": 12, "depth": 1, "num_heads": 3, "img_size": IMAGE}
    model = drawn(timm("beit_base_patch16_224", **keywords))
    (found,) = position_bias_weights(model, described(IMAGE))
    # Behind the biases of offsets are those of the class token; theirs are from key to query.
    theirs = model.blocks[0].attn.relative_position_bias_table.detach()[:-3].T
    np.testing.assert_allclose(found.values, theirs.reshape(3, 7, 11).flip(1, 2), rtol=1e-6)


def test_swin_of_torchvision() -> None:
    model = drawn(torchvision_swin())
    tables = [p for n, p in model.named_parameters() if "bias_table" in n]
    check_tables(position_bias_weights(model, described(32)), tables)
