"""ResNets whose feature maps are averaged: over neighbouring pixels, dropped channels, or members.

What is averaged runs side by side, so that one network has the mean of all maps behind each block,
where it is read, and the mean of all probabilities at its end.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from vitscope.networks.building.families.resnet import network
from vitscope.networks.building.family import WantedNetwork

ARCH = {"block": "basic", "blocks": [2, 2, 2, 2], "width": 8}
CLASSES = 10


def plain() -> nn.Module:
    """Make a ResNet, of which nothing is averaged."""
    return Averaged([steps()])


def blurred() -> nn.Module:
    """Make a ResNet with a box blur of 2x2 pixels before each of its subsamplings."""
    return Averaged([steps(blur=True)])


def dropped(share: float, samples: int) -> nn.Module:
    """Make a ResNet with dropout, of which so many samples are averaged in evaluation."""
    return Averaged([steps(share)], samples)


def ensemble(members: int) -> nn.Module:
    """Make ResNets that each learn from other images of a batch, and know nothing of each other."""
    return Averaged([steps() for _ in range(members)])


def steps(share: float = 0, blur: bool = False) -> list[nn.Module]:
    """Return the stem, the blocks and the classifier of a ResNet."""
    resnet = network(WantedNetwork(ARCH, CLASSES, 32, 3))
    found: list[nn.Module] = [resnet.layer0]
    for stage in range(1, 5):
        blocks = [*resnet.get_submodule(f"layer{stage}")]
        for block in blocks if share else ():
            block.conv1.append(Dropout(share))
        if blur and stage < 4:
            blocks[-1] = nn.Sequential(blocks[-1], Blur())
        found += blocks
    return [*found, resnet.classifier]


class Blur(nn.Module):
    """The mean of each pixel and of those to its right and below; at an edge, of it again."""

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of the same size."""
        return functional.avg_pool2d(functional.pad(x, (0, 1, 0, 1), mode="replicate"), 2, 1)


class Dropout(nn.Module):
    """Dropout of values; in evaluation each `sample` has a mask, the same for all images."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share, self.sample = share, 0

    def forward(self, x: Tensor) -> Tensor:
        """Return a map in which a share of the values is 0, and the others are larger instead."""
        if self.training:
            return functional.dropout(x, self.share)
        drawn = torch.rand(x.shape[1:], generator=torch.Generator().manual_seed(self.sample))
        return x * ((drawn >= self.share) / (1 - self.share)).to(x)


class Averaged(nn.Module):
    """Members that each see a part of a batch in training, and in evaluation all of it."""

    def __init__(self, members: list[list[nn.Module]], samples: int = 1) -> None:
        super().__init__()
        self.members = nn.ModuleList(nn.ModuleList(member) for member in members)
        self.means = nn.ModuleList(nn.Identity() for _ in members[0][:-1])
        self.samples = samples

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of the members in training, else the logarithm of the mean softmax."""
        if self.training:
            parts = images.chunk(len(self.members))
            return torch.cat(
                [self._run(member, x) for member, x in zip(self.members, parts, strict=True)]
            )
        runs = [(member, sample) for member in self.members for sample in range(self.samples)]
        streams = [images] * len(runs)
        for place, mean in enumerate(self.means):
            streams = [
                take(member[place], x, n) for (member, n), x in zip(runs, streams, strict=True)
            ]
            mean(sum(streams) / len(streams))
        logits = [member[-1](x) for (member, _), x in zip(runs, streams, strict=True)]
        return (sum(each.softmax(1) for each in logits) / len(logits)).log()

    def _run(self, member: nn.ModuleList, x: Tensor) -> Tensor:
        for step in member:
            x = step(x)
        return x


def take(step: nn.Module, x: Tensor, sample: int) -> Tensor:
    """Return what a step makes of a map, with the masks of a sample."""
    for module in step.modules():
        if isinstance(module, Dropout):
            module.sample = sample
    return step(x)
