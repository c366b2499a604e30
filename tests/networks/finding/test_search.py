from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import read
from tests.helpers.toys import C, Net, Tokens, mlp
from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import logits_of_network
from vitscope.networks.finding.search import search_for_cut_points

IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


class Mix(nn.Module):
    """A branch over positions, behind its own normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(C), nn.Linear(C, 3 * C)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        return (q @ k.transpose(1, 2)).softmax(-1) @ v


class Loop(nn.Module):
    """A transformer that adds all branches in one module, which holds the last norm too.

    With `always`, every sum is normalized, as where norms come behind the branches.
    """

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([Mix(), mlp()]) for _ in range(2))
        self.norm, self.always = nn.LayerNorm(C), always

    def forward(self, x: Tensor) -> Tensor:
        for branches in self.layers:
            for branch in branches:
                x = x + branch(x)
                x = self.norm(x) if self.always else x
        return x if self.always else self.norm(x)


def stream(model: nn.Module) -> list[Tensor]:
    return read(model, search_for_cut_points(model, IMAGES).points, IMAGES)[1]


def as_map(tokens: Tensor) -> Tensor:
    return tokens.transpose(1, 2).unflatten(2, (2, 2))


@pytest.mark.parametrize("always", [False, True])
def test_norms_behind_every_sum_are_of_the_stream_and_the_last_is_not(
    always: bool,
) -> None:
    torch.manual_seed(0)
    model = Net(Tokens(), Loop(always)).eval()
    with torch.no_grad():
        tokens, (body,) = model.stem(IMAGES), model.blocks
        expected = [as_map(tokens)]
        for branch in chain(*body.layers):
            tokens = tokens + branch(tokens)
            tokens = body.norm(tokens) if always else tokens
            expected.append(as_map(tokens))
    assert all(map(torch.equal, stream(model), expected))
    assert len(stream(model)) == len(expected)


def test_names_are_those_of_the_modules_that_are_the_branches() -> None:
    model = Net(Tokens(), Loop(always=False)).eval()
    names = [point.name for point in search_for_cut_points(model, IMAGES).points]
    branches = ["0.0", "0.1", "1.0", "1.1"]
    assert names == ["stem", *(f"blocks.0.layers.{branch}" for branch in branches)]


LOGITS = torch.ones(2, 3)


@pytest.mark.parametrize(
    "output", [LOGITS, {"aux": torch.zeros(2, 3), "logits": LOGITS}, (LOGITS,), [LOGITS, None, 1]]
)
def test_logits_are_taken_out_of_what_holds_them(output: Any) -> None:
    assert logits_of_network(output) is LOGITS


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: {"aux": LOGITS, "out": LOGITS}, "a dict of 2 tensors"),
        (lambda: (LOGITS, LOGITS), "a tuple of 2 tensors"),
        (lambda: None, "a NoneType of 0 tensors"),
    ],
)
def test_logits_that_nobody_can_tell_are_refused(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(VitscopeError, match=f"returned {found}, allowed: the logits alone"):
        logits_of_network(make())


class Inline(nn.Module):
    """A network that cuts patches and adds all branches in its own forward pass."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.stem, self.head = Tokens(), nn.Linear(C, 5)
        self.layers = nn.ModuleList(mlp() for _ in range(blocks))

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x.mean(1))


class Around(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return 2 * self.network(images)


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_module_around_a_network_hides_no_unit(blocks: int) -> None:
    """The first sum was taken for the stem, since the module in which it is takes the images."""
    network = Inline(blocks).eval()
    for model in (network, Around(network), Around(Around(network))):
        found = search_for_cut_points(model, IMAGES)
        assert [point.kind for point in found.points] == ["stem", *["mlp"] * blocks]
        x = network.stem(IMAGES)
        maps = stream(model)
        assert torch.equal(maps[0], as_map(x))
        assert torch.equal(maps[1], as_map(x + network.layers[0](x)))
