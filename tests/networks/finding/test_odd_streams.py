"""Loops before a pool, appended channels that are summed up, and several streams in one value."""

from itertools import product

import pytest
import torch
from einops import reduce
from torch import Tensor, nn

import vitscope
from tests.helpers.networks import described
from vitscope.errors import VitscopeError
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks

WIDTH, CLASSES = 8, 5


class OnMap(nn.Module):
    """A layer on the map of tokens."""

    def __init__(self, tokens: bool, *layers: nn.Module) -> None:
        super().__init__()
        self.tokens, self.layers = tokens, nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        if not self.tokens:
            return self.layers(x)
        side = int(x.shape[1] ** 0.5)
        maps = x.transpose(1, 2).unflatten(2, (side, side))
        return self.layers(maps).flatten(2).transpose(1, 2)


class Unit(nn.Module):
    def __init__(self, tokens: bool, relu: bool) -> None:
        super().__init__()
        self.branch = OnMap(tokens, nn.BatchNorm2d(WIDTH), nn.Conv2d(WIDTH, WIDTH, 3, padding=1))
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.branch(x)
        return x.relu() if self.relu else x


class Loop(nn.Module):
    """A unit that runs twice, and a pool within a module of its own behind it."""

    def __init__(self, tokens: bool, relu: bool, pool: nn.Module) -> None:
        super().__init__()
        self.tokens, self.stem = tokens, nn.Conv2d(3, WIDTH, 4, 4)
        self.twice, self.last = Unit(tokens, relu), Unit(tokens, relu)
        self.smaller = OnMap(tokens, pool, nn.Conv2d(WIDTH, WIDTH, 1))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        x = x.flatten(2).transpose(1, 2) if self.tokens else x
        for _ in range(2):
            x = self.twice(x)
        x = self.last(self.smaller(x))
        return self.head(x.mean(1) if self.tokens else x.mean((2, 3)))


POOLS = nn.AvgPool2d(2), nn.MaxPool2d(2)


@pytest.mark.parametrize("case", [*product([True, False], [True, False], POOLS)], ids=str)
def test_a_unit_that_runs_twice_before_a_pool(case: tuple[bool, bool, nn.Module]) -> None:
    torch.manual_seed(0)
    images, labels = torch.rand(4, 3, 32, 32), torch.arange(4)
    model = Loop(*case).eval()
    scope = vitscope.look(model, images, labels)
    lesions, blocks = scope.table("lesion"), scope.table("blocks")
    assert lesions["kind"].tolist() == ["conv"] * 3
    assert blocks["height"].tolist() == [8] * 3 + [4] * (len(blocks) - 3)
    assert len(scope.table("feature_variance")) == len(blocks)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, WIDTH, 8, 8), nn.Linear(WIDTH, CLASSES)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(3)
        )

    def tokens(self, images: Tensor) -> Tensor:
        return self.stem(images).flatten(2).transpose(1, 2)


class Plain(Layers):
    def forward(self, images: Tensor) -> Tensor:
        x = self.tokens(images)
        for branch in self.branches:
            x = self.add(x, branch(x))
        return self.head(x.mean(1))

    def add(self, x: Tensor, f: Tensor) -> Tensor:
        return x + f


class Appended(Plain):
    def add(self, x: Tensor, f: Tensor) -> Tensor:
        return reduce(torch.cat([x, f], -1), "n t (s c) -> n t c", "sum", s=2)


class Weighed(Plain):
    def add(self, x: Tensor, f: Tensor) -> Tensor:
        return torch.einsum("sntc,s->ntc", torch.stack([x, f]), torch.ones(2))


class Hyper(Layers):
    """Two streams in one tensor, which each branch mixes (hyper-connections)."""

    def forward(self, images: Tensor) -> Tensor:
        x = self.tokens(images)[:, None].expand(-1, 2, -1, -1)
        for branch in self.branches:
            x = x + branch(x.mean(1))[:, None]
        return self.head(x.sum(1).mean(1))


def test_appended_channels_that_are_summed_up_are_a_sum() -> None:
    torch.manual_seed(0)
    plain, appended = Plain().eval(), Appended().eval()
    appended.load_state_dict(plain.state_dict())
    images, labels = torch.rand(8, 3, 32, 32), torch.randint(CLASSES, (8,))
    tables = [
        {name: vitscope.look(each, images, labels).table(name) for name in ("lesion", "skip_ratio")}
        for each in (plain, appended)
    ]
    assert tables[0]["lesion"]["accuracy"].equals(tables[1]["lesion"]["accuracy"])
    # One rounding of float32 apart, since the sums run in another order.
    ratios = [each["skip_ratio"]["ratio"].to_numpy() for each in tables]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-6)


@pytest.mark.parametrize(("kind", "operation"), [(Hyper, "expand"), (Weighed, "stack")])
def test_several_streams_in_one_value_are_named(kind: type[nn.Module], operation: str) -> None:
    said = rf"'the network' several streams lie in one value, .*\({operation}\): 3 sums"
    with pytest.raises(VitscopeError, match=said):
        list_blocks("network", kind().eval(), described(32))


def test_a_view_of_a_weight_that_needs_a_gradient() -> None:
    """Perceiver's position embeddings: torch's counter of operations fails at them."""
    transformers = pytest.importorskip("transformers")
    import_timm()
    config = transformers.PerceiverConfig(
        num_latents=8,
        d_latents=32,
        num_blocks=1,
        num_self_attends_per_block=2,
        num_self_attention_heads=2,
        num_cross_attention_heads=1,
        image_size=32,
        num_labels=CLASSES,
    )
    model = transformers.PerceiverForImageClassificationLearned(config).eval()
    (warning,) = list_blocks("perceiver", model, described(32)).warnings
    assert "5 sums are in no figure" in warning
    assert all(each.requires_grad for each in model.parameters())
