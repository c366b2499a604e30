"""Attention is told from other products by what they sum over, however they are written."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.helpers.networks import described
from vitscope.networks.finding.blocks import list_blocks

# The side of the map, its channels, and experts, slots or heads.
SIDE, WIDTH, MANY = 4, 12, 3
TOKENS = SIDE * SIDE


class Layers(nn.Module):
    """The layers that branches take."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in "qkv")
        self.router = nn.Linear(WIDTH, MANY)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(MANY))
        self.stacked = nn.Parameter(torch.randn(MANY, WIDTH, WIDTH))
        self.of_pairs = nn.Linear(WIDTH, TOKENS)
        self.of_neighbours = nn.Linear(WIDTH, 9)
        self.memory = nn.Parameter(torch.randn(2, 1, MANY, WIDTH))
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.covariance = nn.Linear(WIDTH, 1)


class Network(nn.Module):
    def __init__(self, branch: Callable[[Layers, Tensor], Tensor]) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, WIDTH, 8, 8), nn.Linear(WIDTH, 10)
        self.layers, self.branch = Layers(), branch

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2)
        return self.head((x + self.branch(self.layers, x)).mean(1))


def all_experts(m: Layers, x: Tensor) -> Tensor:
    return torch.stack([expert(x).relu() for expert in m.experts], 2)


def einsum_of_experts(m: Layers, x: Tensor) -> Tensor:
    return torch.einsum("bne,bned->bnd", m.router(x).softmax(-1), all_experts(m, x))


def stacked_experts(m: Layers, x: Tensor) -> Tensor:
    made = torch.einsum("bnd,edf->bnef", x, m.stacked).relu()
    return torch.einsum("bnef,bne->bnf", made, m.router(x).sigmoid())


def bmm_of_experts(m: Layers, x: Tensor) -> Tensor:
    weights = m.router(x).softmax(-1).flatten(0, 1)[:, None]
    return torch.bmm(weights, all_experts(m, x).flatten(0, 1)).view_as(x)


def best_experts(m: Layers, x: Tensor) -> Tensor:
    weights, which = m.router(x).softmax(-1).topk(2, -1)
    chosen = all_experts(m, x).gather(2, which[..., None].expand(-1, -1, -1, WIDTH))
    return (weights[:, :, None] @ chosen).squeeze(2)


def soft_experts(m: Layers, x: Tensor) -> Tensor:
    """Slots take weighted means of tokens, and tokens those of what experts make of slots."""
    scores = m.router(x)
    slots = scores.softmax(1).transpose(1, 2) @ x
    made = torch.einsum("bed,edf->bef", slots, m.stacked).relu()
    return scores.softmax(2) @ made


def experts_of_the_image(m: Layers, x: Tensor) -> Tensor:
    """A matrix per image, as in CondConv."""
    matrix = torch.einsum("be,edf->bdf", m.router(x.mean(1)).sigmoid(), m.stacked)
    return x @ matrix


def context(m: Layers, x: Tensor) -> Tensor:
    """GCNet's: one mean of all positions, which is added to each."""
    weights = m.covariance(x).softmax(1)
    return x + m.v((x.transpose(1, 2) @ weights).transpose(1, 2))


def context_by_einsum(m: Layers, x: Tensor) -> Tensor:
    made = torch.einsum("bno,bnd->bod", m.covariance(x).softmax(1), x)
    return x * m.v(made).sigmoid()


def fused_context(m: Layers, x: Tensor) -> Tensor:
    query = m.memory[:1, :, :1].expand(len(x), 1, 1, WIDTH)
    return m.v(F.scaled_dot_product_attention(query, m.k(x)[:, None], x[:, None])[:, 0]) + 0 * x


def covariance(m: Layers, x: Tensor) -> Tensor:
    """Gates channels by how they vary together over positions (GSoP)."""
    centred = x - x.mean(1, keepdim=True)
    gate = m.covariance(centred.transpose(1, 2) @ centred).transpose(1, 2)
    return m.v(x) * gate.sigmoid()


def bmm_gate(m: Layers, x: Tensor) -> Tensor:
    maps = m.conv(x.transpose(1, 2).unflatten(2, (SIDE, SIDE)))
    gate = maps.mean((2, 3)).sigmoid().diag_embed()
    return torch.bmm(gate, maps.flatten(2)).transpose(1, 2)


def external(m: Layers, x: Tensor) -> Tensor:
    """Attention to a memory that no image changes is a layer with a softmax inside."""
    keys, values = m.memory.expand(2, len(x), MANY, WIDTH)
    return F.scaled_dot_product_attention(m.q(x)[:, None], keys[:, None], values[:, None])[:, 0]


def plain(m: Layers, x: Tensor) -> Tensor:
    return (m.q(x) @ m.k(x).transpose(1, 2)).softmax(-1) @ m.v(x)


def on_the_right(m: Layers, x: Tensor) -> Tensor:
    weights = (m.k(x) @ m.q(x).transpose(1, 2)).sigmoid()
    return (m.v(x).transpose(1, 2) @ weights).transpose(1, 2)


def linear(m: Layers, x: Tensor) -> Tensor:
    return m.q(x).relu() @ (m.k(x).relu().transpose(1, 2) @ m.v(x))


def of_channels(m: Layers, x: Tensor) -> Tensor:
    return m.v(x) @ (m.q(x).transpose(1, 2) @ m.k(x)).softmax(-1)


def double(m: Layers, x: Tensor) -> Tensor:
    """A²-Net: gathers over positions, and hands out."""
    gathered = m.v(x).transpose(1, 2) @ m.router(x).softmax(1)
    return m.router(x).softmax(-1) @ gathered.transpose(1, 2)


def synthesizer(m: Layers, x: Tensor) -> Tensor:
    """The weights of all keys are made of the query alone."""
    return m.of_pairs(x).softmax(-1) @ m.v(x)


def outlook(m: Layers, x: Tensor) -> Tensor:
    """VOLO's: weights of neighbours are made of the position alone."""
    maps = m.v(x).transpose(1, 2).unflatten(2, (SIDE, SIDE))
    neighbours = F.unfold(maps, 3, padding=1).unflatten(1, (WIDTH, 9)).permute(0, 3, 2, 1)
    return (m.of_neighbours(x).softmax(-1)[:, :, None] @ neighbours).squeeze(2)


def neighbours(m: Layers, x: Tensor) -> Tensor:
    maps = F.pad(m.v(x).transpose(1, 2).unflatten(2, (SIDE, SIDE)), (1, 1, 1, 1))
    around = maps.unfold(2, 3, 1).unfold(3, 3, 1).flatten(4).flatten(2, 3).permute(0, 2, 3, 1)
    return (m.of_neighbours(x).sigmoid()[:, :, None] @ around).squeeze(2)


def agents(m: Layers, x: Tensor) -> Tensor:
    """Latents take means of tokens, go through a layer, and tokens attend to them."""
    latents = (m.memory[0] @ m.k(x).transpose(1, 2)).softmax(-1) @ x
    return (m.q(x) @ m.v(latents).transpose(1, 2)).softmax(-1) @ latents


def experts_and_attention(m: Layers, x: Tensor) -> Tensor:
    return plain(m, einsum_of_experts(m, x))


@pytest.mark.parametrize(
    ("branch", "kind"),
    [
        *(
            (each, "mlp")
            for each in (
                *(einsum_of_experts, stacked_experts, bmm_of_experts, best_experts, soft_experts),
                *(experts_of_the_image, context, context_by_einsum, fused_context, covariance),
                external,
            )
        ),
        (bmm_gate, "conv"),
        *(
            (each, "msa")
            for each in (
                *(plain, on_the_right, linear, of_channels, double, synthesizer, outlook),
                *(neighbours, agents, experts_and_attention),
            )
        ),
    ],
)
def test_kind_is_by_what_is_summed_over(
    branch: Callable[[Layers, Tensor], Tensor], kind: str
) -> None:
    model = Network(branch).eval()
    table = list_blocks("network", model, described(SIDE * 8) | {"classes": 10}).table
    assert table["kind"].tolist() == ["stem", kind]
