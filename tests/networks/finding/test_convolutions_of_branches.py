"""A branch with convolutions is `conv`, unless they lie between the linear layers of an MLP."""

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import described
from tests.helpers.toys import C, Net, Residual, Tokens
from vitscope.networks.finding.blocks import list_blocks

# Of 16 x 16 pixels, 4 x 4 tokens; twice as many channels within a branch.
SIDE, WIDE = 4, 2 * C


def map_of(x: Tensor) -> Tensor:
    return x.mT.unflatten(2, (SIDE, SIDE))


def tokens_of(x: Tensor) -> Tensor:
    return x.flatten(2).mT


class Depthwise(nn.Conv2d):
    """A convolution of each channel, on tokens."""

    def __init__(self) -> None:
        super().__init__(WIDE, WIDE, 3, padding=1, groups=WIDE)

    def forward(self, x: Tensor) -> Tensor:
        return tokens_of(super().forward(map_of(x)))


class Gated(nn.Module):
    """As the convolutional GLU of TransNeXt: the convolution takes half of the layer's channels."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(C, 2 * WIDE), nn.Linear(WIDE, C)
        self.depthwise = Depthwise()

    def forward(self, x: Tensor) -> Tensor:
        x, gate = self.first(x).chunk(2, -1)
        return self.last(torch.nn.functional.gelu(self.depthwise(x)) * gate)


class Excited(nn.Module):
    """As the MBConv of lucidrains' MaxViT: linear layers squeeze and excite what it convolves."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(C, WIDE, 1), nn.Conv2d(WIDE, C, 1)
        self.depthwise = Depthwise()
        self.excite = nn.Sequential(nn.Linear(WIDE, 2), nn.SiLU(), nn.Linear(2, WIDE))

    def forward(self, x: Tensor) -> Tensor:
        x = self.depthwise(tokens_of(self.first(map_of(x)).relu()))
        x = x * self.excite(x.mean(1, keepdim=True)).sigmoid()
        return tokens_of(self.last(map_of(x)))


class Summed(nn.Module):
    """As the feed-forward network of RMT: the convolution is added to what it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = Depthwise()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.depthwise(x)


def layers(*inner: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(C, WIDE), *inner, nn.GELU(), nn.Linear(WIDE, C))


@pytest.mark.parametrize(
    ("branch", "kind"),
    [
        (layers(Depthwise()), "mlp"),
        (layers(Summed(), Depthwise()), "mlp"),
        (Gated(), "mlp"),
        (Excited(), "conv"),
    ],
)
def test_what_widens_a_convolution_tells_its_kind(branch: nn.Module, kind: str) -> None:
    model = Net(Tokens(), Residual(branch)).eval()
    table = list_blocks("net", model, described(SIDE * 4)).table
    assert table["kind"].tolist() == ["stem", kind]
