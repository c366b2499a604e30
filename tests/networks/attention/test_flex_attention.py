"""FlexAttention, an operator that runs functions of the network's own on its scores."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import vitscope
from tests.helpers.attending import found_in, weights_of
from tests.helpers.toys import C, Net, Tokens, mlp
from vitscope.errors import VitscopeError
from vitscope.networks.attention.reading import differences_of_read_attention
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.joins import prove_capture

SIZE, PATCH, HEADS, DEPTH = 16, 4, 2, 2
TOKENS = (SIZE // PATCH) ** 2
NETWORK = {"image_size": SIZE, "mean": [0.5] * 3, "classes": 5}
IMAGES = torch.randn(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
COMPILED = torch.compile(flex_attention, backend="eager", fullgraph=True)


class Block(nn.Module):
    """A block of a ViT, whose attention has a bias for each head and pair of tokens."""

    def __init__(
        self,
        attend: Callable[..., Any],
        causal: bool = False,
        shared: bool = False,
        rotary: bool = False,
    ) -> None:
        super().__init__()
        self.attend, self.causal, self.rotary = attend, causal, rotary
        # Keys and values have half as many heads where two of the queries share one.
        self.widths = (C, *[C // HEADS if shared else C] * 2)
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.proj = nn.Linear(C, sum(self.widths)), nn.Linear(C, C)
        self.bias = nn.Parameter(torch.randn(HEADS, TOKENS, TOKENS))
        self.mlp = mlp()
        angles = torch.randn(TOKENS, C // HEADS // 2)
        self.register_buffer("turn", torch.polar(torch.ones_like(angles), angles))

    def split(self, tokens: Tensor) -> list[Tensor]:
        parts = self.qkv(self.norm1(tokens)).split(self.widths, -1)
        query, key, value = (part.unflatten(-1, (-1, C // HEADS)).transpose(1, 2) for part in parts)
        return [self.turned(query), self.turned(key), value] if self.rotary else [query, key, value]

    def turned(self, each: Tensor) -> Tensor:
        """Return queries or keys with rotary positions: turned in each plane of two channels."""
        first, second = each.chunk(2, -1)
        cos, sin = self.turn.real, self.turn.imag
        return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = None
        if self.causal:
            mask = create_block_mask(
                lambda b, h, query, key: query >= key, None, None, TOKENS, TOKENS, device="cpu"
            )
        attended = self.attend(
            *self.split(tokens),
            score_mod=lambda score, b, h, query, key: score + self.bias[h, query, key],
            block_mask=mask,
            enable_gqa=len(set(self.widths)) > 1,
        )
        tokens = tokens + self.proj(attended.transpose(1, 2).flatten(2))
        return tokens + self.mlp(self.norm2(tokens))

    def by_hand(self, tokens: Tensor) -> Tensor:
        """Return the attention in double precision, (images, heads, queries, keys)."""
        query, key, _ = (each.double() for each in self.split(tokens))
        scores = query @ key.mT / (C // HEADS) ** 0.5 + self.bias
        if self.causal:
            scores = scores.masked_fill(~torch.ones(TOKENS, TOKENS).tril().bool(), -torch.inf)
        return scores.softmax(-1)


def transformer(attend: Callable[..., Any] = flex_attention, **options: bool) -> Net:
    torch.manual_seed(0)
    return Net(Tokens(), *(Block(attend, **options) for _ in range(DEPTH)))


@pytest.mark.parametrize(
    "model",
    [
        transformer(),
        transformer(causal=True),
        transformer(shared=True),
        transformer(rotary=True, causal=True),
        transformer(COMPILED),
        transformer(COMPILED, rotary=True),
    ],
    ids=["bias", "mask", "shared keys", "rotary", "compiled", "compiled, rotary"],
)
@torch.no_grad()
def test_a_network_with_flex_attention_is_read_as_any(model: Net) -> None:
    blocks = list_blocks("net", model, NETWORK)
    assert blocks.table["kind"].tolist() == ["stem", *["msa", "mlp"] * DEPTH]
    proofs = prove_capture(model, blocks.points, IMAGES)
    assert (proofs.wrong, proofs.silenced, proofs.restored) == ([], 2 * DEPTH, 2 * DEPTH)

    found = found_in(model, SIZE)
    assert (len(found.attentions), found.refused) == (DEPTH, {})
    tokens = model.stem(IMAGES)
    for block, read in zip(model.blocks, weights_of(model, found.attentions, IMAGES), strict=True):
        torch.testing.assert_close(read[:, 0].double(), block.by_hand(tokens), rtol=1e-5, atol=1e-6)
        tokens = block(tokens)
    apart = differences_of_read_attention(model, found.attentions, IMAGES)
    assert len(apart) == DEPTH
    assert max(apart.values()) < 1e-6
    # Each block runs alone too, and nothing is told of functions that a pass makes anew.
    assert blocks.warnings == []
    x = IMAGES
    for part in vitscope.blocks(model, IMAGES):
        x = part(x)
    assert torch.equal(x, model(IMAGES))


def test_products_of_queries_keys_and_values_are_counted() -> None:
    table = list_blocks("net", transformer(), NETWORK).table
    linear = TOKENS * C * (3 * C + C)
    assert table["operations"][1] == linear + 2 * TOKENS**2 * C


class Choosing(nn.Conv2d):
    """A network that lets torch choose its path, by an operator with functions for operands."""

    def forward(self, images: Tensor) -> Tensor:
        maps = super().forward(images)
        return torch.cond(maps.sum() > 0, torch.sin, torch.cos, (maps,)).mean((2, 3))


def test_other_operators_that_run_functions_are_refused() -> None:
    with pytest.raises(VitscopeError, match="operator 'cond', which runs functions of its own"):
        list_blocks("net", Choosing(3, C, PATCH, PATCH), {**NETWORK, "classes": C})
