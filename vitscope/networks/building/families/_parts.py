"""Parts that the authors' convolutional networks share, with the module names of their weights."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from vitscope.networks.building.timm_import import import_timm

# Channels of a gate's input for each of those in between.
REDUCTION = 16


def conv_bn(
    in_channels: int, channels: int, kernel: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    """Return a convolution that keeps the resolution up to its stride, and its normalization."""
    conv = nn.Conv2d(in_channels, channels, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(channels)]


def stem_pooling() -> nn.Module:
    """Return the pooling at the end of a stem for large images."""
    return nn.MaxPool2d(3, stride=2, padding=1)


def drop_rates(last: float, blocks: Sequence[int]) -> Iterator[float]:
    """Yield how often each block loses its branch in training: 0 at first, `last` at the end."""
    count = sum(blocks)
    return (last * number / max(1, count - 1) for number in range(count))


def drop_path(rate: float) -> nn.Module:
    """Return stochastic depth: what leaves out the branches of some images in training."""
    return import_timm("timm.layers").DropPath(rate) if rate else nn.Identity()


class ChannelGate(nn.Module):
    """Weighs channels by their means (squeeze and excitation), or by means and maxima."""

    def __init__(self, channels: int, maxima: bool) -> None:
        super().__init__()
        narrow = max(1, channels // REDUCTION)
        self.maxima = maxima
        self.ff = nn.Sequential(
            nn.Linear(channels, narrow, bias=False),
            nn.ReLU(),
            nn.Linear(narrow, channels, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        weights = self.ff(x.mean((2, 3)))
        if self.maxima:
            weights = (weights + self.ff(x.amax((2, 3)))) / 2
        out: Tensor = x * weights.sigmoid()[:, :, None, None]
        return out


class SpatialGate(nn.Module):
    """Weighs positions by the mean and the maximum of their channels."""

    def __init__(self) -> None:
        super().__init__()
        self.ff = nn.Sequential(*conv_bn(2, 1, 7))

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], dim=1)
        out: Tensor = x * self.ff(seen).sigmoid()
        return out


def gate_of(kind: str | None, channels: int) -> nn.Module:
    """Return the gate at the end of a branch, by its name; without a name it changes nothing."""
    if kind is None:
        return nn.Identity()
    gate = ChannelGate(channels, maxima=kind == "cbam")
    return nn.Sequential(gate, SpatialGate()) if kind == "cbam" else gate
