"""Branches that mix positions by weights that no image changes are of a kind of their own."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import MINI, described, mini_blocks
from vitscope.networks.building.networks import find_family
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks

TOKENS, WIDTH = 16, 12


class Transposed(nn.Module):
    """A layer on transposed tokens, which are its channels."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class Weighed(nn.Module):
    """Weights of pairs of positions on the left of a product."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(TOKENS, TOKENS))

    def forward(self, x: Tensor) -> Tensor:
        return self.weights.softmax(-1) @ x


class Fourier(nn.Module):
    """The real part of a Fourier transform, as FNet takes it."""

    def __init__(self, *dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.fftn(x, dim=self.dimensions).real


class Pooled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        maps = x.transpose(1, 2).unflatten(2, (4, 4))
        return nn.functional.avg_pool2d(maps, 3, 1, 1).flatten(2).transpose(1, 2)


class Depthwise(Pooled):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        maps = x.transpose(1, 2).unflatten(2, (4, 4))
        return self.layer(maps).flatten(2).transpose(1, 2)


class Network(nn.Module):
    def __init__(self, branch: nn.Module, prefix: int = 0) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 8, 8)
        self.prefix = nn.Parameter(torch.zeros(1, prefix, WIDTH))
        self.branch, self.head = branch, nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.prefix.expand(len(x), -1, -1), x], 1)
        return self.head((x + self.branch(x)).mean(1))


@pytest.mark.parametrize(
    ("branch", "kind"),
    [
        (Transposed(nn.Linear(TOKENS, TOKENS)), "mixing"),
        (
            Transposed(nn.Sequential(nn.Linear(TOKENS, 7), nn.GELU(), nn.Linear(7, TOKENS))),
            "mixing",
        ),
        (nn.Conv1d(TOKENS, TOKENS, 1), "mixing"),
        (Weighed(), "mixing"),
        (Fourier(1, 2), "mixing"),
        (Fourier(1), "mixing"),
        (Fourier(2), "mlp"),
        (nn.Linear(WIDTH, WIDTH), "mlp"),
        (Transposed(nn.Conv1d(WIDTH, WIDTH, 1)), "mlp"),
        (Transposed(nn.Conv1d(WIDTH, WIDTH, 3, padding=1)), "conv"),
        (Depthwise(), "conv"),
        (Pooled(), "pool"),
    ],
)
def test_what_sums_over_positions_by_constants_mixes(branch: nn.Module, kind: str) -> None:
    table = list_blocks("network", Network(branch).eval(), described(32) | {"classes": 10}).table
    assert table["kind"].tolist() == ["stem", kind]


def test_tokens_without_a_position_are_mixed_with_those_that_have_one() -> None:
    model = Network(Transposed(nn.Linear(TOKENS + 1, TOKENS + 1)), prefix=1).eval()
    table = list_blocks("network", model, described(32) | {"classes": 10}).table
    assert table["kind"].tolist() == ["stem", "mixing"]


@pytest.mark.parametrize(
    ("name", "size", "kinds"),
    [
        ("resmlp_12_224", 32, ["mixing", "mlp"] * 12),
        ("gmlp_ti16_224", 32, ["mixing"] * 30),
        ("mixer_s32_224", 64, ["mixing", "mlp"] * 8),
    ],
)
def test_mlps_of_timm(name: str, size: int, kinds: list[str]) -> None:
    model = import_timm().create_model(name, img_size=size).eval()
    table = list_blocks(name, model, described(size) | {"classes": 1000}).table
    assert table["kind"].tolist() == ["stem", *kinds]


def test_patch_merging_subsamples() -> None:
    """It sums over neighbouring positions, too, but leaves fewer of them."""
    model = import_timm().create_model("swin_tiny_patch4_window7_224", img_size=64, window_size=2)
    table = list_blocks("swin", model.eval(), described(64) | {"classes": 1000}).table
    assert {*table["kind"]} == {"stem", "msa", "mlp", "pool"}


VIT = {"patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 2}
ALTERNET = {"block": "basic", "blocks": [2, 2], "attention": [0, 1], "heads": [1, 2]}
ALTERNET |= {"head_dim": 8, "window": 4, "width": 8}


@pytest.mark.parametrize(
    ("mixing", "kind"),
    [("fixed", "mixing"), ("uniform", "mixing"), ("depthwise", "conv"), ("static_key", "msa")],
)
@pytest.mark.parametrize("arch", [VIT, VIT | {"attention_window": 3}])
def test_vit_without_attention(arch: dict[str, Any], mixing: str, kind: str) -> None:
    model = find_family("vit").build(arch | {"mixing": mixing}, 10, 32).eval()
    table = list_blocks("vit", model, described(32) | {"classes": 10}).table
    assert table["kind"].tolist() == ["stem", *[kind, "mlp"] * 2]


@pytest.mark.parametrize("mixing", ["fixed", "uniform"])
def test_alternet_without_attention(mixing: str) -> None:
    models = {
        how: find_family("alternet").build(ALTERNET | {"mixing": how}, 10, 32).eval()
        for how in ("attention", mixing)
    }
    kinds = {
        how: list_blocks(how, model, described(32) | {"classes": 10}).table["kind"]
        for how, model in models.items()
    }
    assert "msa" in {*kinds["attention"]}
    assert kinds[mixing].tolist() == kinds["attention"].replace("msa", "mixing").tolist()


def test_the_bundled_mixer() -> None:
    blocks = MINI["mixer"]["arch"]["num_blocks"]
    assert mini_blocks("mixer").table["kind"].tolist() == ["stem", *["mixing", "mlp"] * blocks]
