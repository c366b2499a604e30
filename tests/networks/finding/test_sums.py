from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import described
from vitscope.measures.branches.lesion import lesioned
from vitscope.measures.branches.skip_ratio import read_skip_ratios
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.finding.cut_points import Join

IMAGES = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(1))
C = 8
Add = Callable[..., Tensor]


def into(x: Tensor, branch: Tensor) -> Tensor:
    x[:] += branch
    return x


# What is added to the stream by two branches, and by three; each is left as it was without them.
TWO: dict[str, Add] = {
    "x + (a + b)": lambda x, a, b: x + (a + b),
    "(a + b) + x": lambda x, a, b: (a + b) + x,
    "(x + a) + b": lambda x, a, b: (x + a) + b,
    "b + (x + a)": lambda x, a, b: b + (x + a),
    "(x + b) + a": lambda x, a, b: (x + b) + a,
    "stacked": lambda x, a, b: torch.stack([a, x, b]).sum(0),
    "less": lambda x, a, b: (x - a) - b,
    "a multiple": lambda x, a, b: torch.add(x + a, b, alpha=0.5),
    "in place": lambda x, a, b: x.clone().add_(a).add_(b),
    "all of it in place": lambda x, a, b: into(into(x.clone(), a), b),
    "chosen": lambda x, a, b: torch.where(torch.arange(C) > 2, x + a, x) + b,
    "a list": lambda x, a, b: sum([a, b], x),
}
THREE: dict[str, Add] = {
    "((x + a) + b) + c": lambda x, a, b, c: ((x + a) + b) + c,
    "(x + a) + (b + c)": lambda x, a, b, c: (x + a) + (b + c),
    "a + (b + (c + x))": lambda x, a, b, c: a + (b + (c + x)),
    "(a + x) + (b + c)": lambda x, a, b, c: (a + x) + (b + c),
    "c + ((a + x) + b)": lambda x, a, b, c: c + ((a + x) + b),
    "((a + b) + c) + x": lambda x, a, b, c: ((a + b) + c) + x,
}


class Block(nn.Module):
    """Adds branches to a stream; `on` says whether it does."""

    def __init__(self, add: Add, branches: int) -> None:
        super().__init__()
        self.add, self.on = add, True
        self.norm = nn.LayerNorm(C)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Linear(C, 2 * C), nn.GELU(), nn.Linear(2 * C, C))
            for _ in range(branches)
        )
        self.seen: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.on:
            return x
        y = self.norm(x)
        whole = self.add(x, *(branch(y) for branch in self.branches))
        self.seen = x, whole - x
        return whole


class Net(nn.Module):
    def __init__(self, add: Add, branches: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, C, 4, 4)
        self.blocks = nn.Sequential(*(Block(add, branches) for _ in range(3)))
        self.head = nn.Linear(C, 5)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(images).flatten(2).transpose(1, 2)).mean(1))


def listed(model: nn.Module) -> Blocks:
    return list_blocks("net", model, described(16))


def joins_in(blocks: Blocks) -> list[Join]:
    return [point.join for point in blocks.points if point.join is not None]


@pytest.mark.parametrize("how", [*TWO, *THREE])
@torch.no_grad()
def test_branches_are_all_that_is_added(how: str) -> None:
    torch.manual_seed(0)
    model = Net({**TWO, **THREE}[how], 2 if how in TWO else 3).eval()
    blocks = listed(model)
    joins = joins_in(blocks)
    assert [point.kind for point in blocks.points] == ["stem", "mlp", "mlp", "mlp"]
    assert all(join.identity for join in joins)
    clean, without = lesioned(model, joins, IMAGES)
    assert torch.equal(clean, model(IMAGES))
    seen = [block.seen for block in model.blocks]
    ratios = read_skip_ratios(model, blocks.points, [IMAGES])
    for number, (block, logits) in enumerate(zip(model.blocks, without, strict=True)):
        block.on = False
        torch.testing.assert_close(logits, model(IMAGES), rtol=0, atol=1e-6)
        block.on = True
        if joins[number].layout is None:
            assert any(f"'blocks.{number}'" in warning for warning in blocks.warnings)
            continue
        norms = [side.double().flatten(1).norm(dim=1) for side in seen[number]]
        expected = torch.log(norms[0] / norms[1]).numpy()
        np.testing.assert_allclose(ratios[number + 1, "positions"], expected, rtol=0, atol=1e-5)


class Shortcut(nn.Module):
    """A convolution, between two sides of a sum that both change what they get."""

    def __init__(self, shortcut: nn.Module, branch: nn.Module) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, C, 2, 2)
        self.shortcut, self.branch = shortcut, branch
        self.head = nn.Linear(C, 5)
        self.on = True

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        x = self.shortcut(x) + self.branch(x) if self.on else self.shortcut(x)
        return self.head(x.mean((2, 3)))


def conv(size: int) -> nn.Conv2d:
    return nn.Conv2d(C, C, size, padding=size // 2)


@torch.no_grad()
def test_a_shortcut_that_is_longer_than_the_branch() -> None:
    """As in a ResNet-D, whose shortcut pools; the branch is one convolution of several pixels."""
    torch.manual_seed(0)
    shortcut = nn.Sequential(nn.AvgPool2d(2), conv(1), nn.BatchNorm2d(C))
    model = Shortcut(shortcut, nn.Conv2d(C, C, 3, 2, 1)).eval()
    (join,) = joins_in(listed(model))
    _, (without,) = lesioned(model, [join], IMAGES)
    model.on = False
    assert torch.equal(without, model(IMAGES))


@pytest.mark.parametrize(
    "sides",
    [
        (nn.Sequential(conv(1), nn.BatchNorm2d(C)), nn.AvgPool2d(3, 1, 1)),
        (nn.Sequential(conv(1), nn.ReLU()), nn.Sequential(conv(3), nn.ReLU())),
    ],
    ids=["both plain", "neither plain"],
)
def test_where_nobody_can_tell_the_sides_it_is_told(sides: tuple[nn.Module, nn.Module]) -> None:
    blocks = listed(Shortcut(*sides).eval())
    assert joins_in(blocks) == []
    (warning,) = blocks.warnings
    assert "nobody can tell which side of the sum is the shortcut" in warning
    assert f"'{blocks.points[-1].name}'" in warning


def test_another_operation_than_a_sum_is_told() -> None:
    model = Net(lambda x, a: x + a, 1).eval()
    model.blocks[1].add = torch.maximum
    (warning,) = listed(model).warnings
    assert "in 'blocks.1' stream and branch meet in 'maximum'" in warning
