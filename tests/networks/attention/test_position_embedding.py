from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.kinds import timm
from tests.helpers.networks import described, mini
from tests.helpers.refusals import refusal
from vitscope.networks.attention.found_weights import Named, position_embedding_weights

IMAGES = described(12)
# Four channels at three by three positions.
GRID = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0))
TOKENS = GRID.flatten(1).T


class Network(nn.Module):
    """Tokens of patches, to which something is added, and one block that attends."""

    def __init__(self, add: Callable[["Network", Tensor], Tensor], **parameters: Tensor) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 4, 4, 4)
        self.add = add
        for name, value in parameters.items():
            self.register_parameter(name, nn.Parameter(value))
        self.scale = nn.Parameter(torch.ones(4))
        self.heads, self.head = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.add(self, self.patches(images)) * self.scale + 0.5 * self.scale
        return self.head((tokens + self.heads(tokens, tokens, tokens)[0]).mean(1))


def tokens(maps: Tensor) -> Tensor:
    return maps.flatten(2).transpose(1, 2)


def found(add: Callable[[Network, Tensor], Tensor], **parameters: Tensor) -> Named:
    return position_embedding_weights(Network(add, **parameters), IMAGES)


@pytest.mark.parametrize(
    ("add", "where", "name"),
    [
        (lambda net, maps: tokens(maps) + net.where, TOKENS, "where"),
        (lambda net, maps: tokens(maps + net.where), GRID[None], "where"),
        # What is written is kept as a copy, which has no name.
        (lambda net, maps: tokens(maps).add_(net.where), TOKENS, "Network"),
        (lambda net, maps: net.where + tokens(maps), TOKENS, "where"),
    ],
    ids=["tokens", "maps", "in place", "from the other side"],
)
def test_what_is_added_is_found(add: Any, where: Tensor, name: str) -> None:
    embedding = found(add, where=where)
    assert embedding.name == name
    assert torch.equal(embedding.values, GRID)


@pytest.mark.parametrize("before", [1, 2])
def test_tokens_without_a_position_are_left_out(before: int) -> None:
    def add(net: Network, maps: Tensor) -> Tensor:
        first = net.first.expand(len(maps), -1, -1)
        return torch.cat([first, tokens(maps)], dim=1) + net.where

    whole = torch.cat([torch.full((before, 4), 9.0), TOKENS])
    embedding = found(add, first=torch.randn(1, before, 4), where=whole[None])
    assert torch.equal(embedding.values, GRID)


def test_one_that_is_made_of_parameters_has_the_name_of_what_adds_it() -> None:
    class Adding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.columns = (nn.Parameter(torch.randn(3, 4)) for _ in range(2))

        def forward(self, maps: Tensor) -> Tensor:
            return tokens(maps) + (self.rows[:, None] + self.columns).flatten(0, 1)

    model: Any = Network(lambda net, maps: net.adding(maps))
    model.adding = Adding()
    embedding = position_embedding_weights(model, IMAGES)
    assert embedding.name == "adding"
    expected = model.adding.rows[:, None] + model.adding.columns
    torch.testing.assert_close(embedding.values, expected.permute(2, 0, 1))


def test_one_that_is_resized_is_as_it_is_used() -> None:
    def add(net: Network, maps: Tensor) -> Tensor:
        return tokens(maps + nn.functional.interpolate(net.where, (3, 3), mode="bilinear"))

    small = torch.randn(1, 4, 2, 2)
    resized = nn.functional.interpolate(small, (3, 3), mode="bilinear")
    torch.testing.assert_close(found(add, where=small).values, resized[0])


@pytest.mark.parametrize(
    "add",
    [
        lambda net, maps: tokens(maps),
        # The same at all positions.
        lambda net, maps: tokens(maps) + net.where[0],
        # It differs between images.
        lambda net, maps: tokens(maps) + maps.mean((2, 3))[:, None] * net.where,
        # Within a branch.
        lambda net, maps: tokens(maps) + (tokens(maps) + net.where).tanh(),
    ],
)
def test_networks_without_one_are_refused(add: Any) -> None:
    assert refusal(found, add, where=TOKENS) == (
        "the network has no position embedding: it adds nothing to its tokens that differs between "
        "positions and is the same for all images."
    )


@pytest.mark.parametrize("name", ["resnet", "swin", "alternet", "mixer"])
def test_families_without_one(name: str) -> None:
    assert "has no position embedding" in refusal(
        position_embedding_weights, mini(name)[0], described()
    )


@pytest.mark.parametrize("name", ["vit", "pit"])
def test_families_with_one(name: str) -> None:
    model, _ = mini(name)
    embedding = position_embedding_weights(model, described())
    assert embedding.name == "pos_embed"
    whole = model.pos_embed[0]
    # That of ViT begins with the class token, that of PiT is a map.
    expected = whole[1:].T.reshape(-1, 8, 8) if name == "vit" else whole
    assert torch.equal(embedding.values, expected)


@pytest.mark.parametrize(
    ("name", "keywords", "size", "parameter", "shape"),
    [
        ("deit_tiny_distilled_patch16_224", {}, 224, "pos_embed", (12, 14, 14)),
        ("vit_small_patch14_reg4_dinov2", {"img_size": 56}, 56, "pos_embed", (12, 4, 4)),
        ("cait_xxs24_224", {"num_heads": 3}, 224, "pos_embed", (12, 14, 14)),
    ],
)
def test_networks_of_timm(
    name: str, keywords: dict[str, Any], size: int, parameter: str, shape: tuple[int, ...]
) -> None:
    options = {"embed_dim": 12, "depth": 1, "num_heads": 3} | keywords
    model = timm(name, **options).eval()
    embedding = position_embedding_weights(model, described(size))
    assert (embedding.name, tuple(embedding.values.shape)) == (parameter, shape)
    whole = dict(model.named_parameters())[parameter][0]
    assert torch.equal(embedding.values.flatten(1).T, whole[-shape[1] * shape[2] :])
