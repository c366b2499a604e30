import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import described
from tests.helpers.toys import C, Net, Residual, Tokens, mlp
from vitscope.measures.branches.lesion import lesioned
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.finding.cut_points import Join

IMAGES = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def listed(model: nn.Module) -> Blocks:
    return list_blocks("net", model, described(16))


def joins_in(blocks: Blocks) -> list[Join]:
    return [point.join for point in blocks.points if point.join is not None]


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
    model = Net(Tokens(), *(Residual(mlp()) for _ in range(3))).eval()
    model.blocks[1].add = torch.maximum
    (warning,) = listed(model).warnings
    assert "in 'blocks.1' stream and branch meet in 'maximum'" in warning
