"""The ResNets of the paper for small images: a 3x3 stem without pooling, four stages."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from vitscope.image_size import ImageSize
from vitscope.networks.building.family import Family

ARCH = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "depth": {
            "description": "A network of the paper, by its depth.",
            "enum": [18, 34, 50, 101, 152],
        },
        "block": {"description": "The kind of residual block.", "enum": ["basic", "bottleneck"]},
        "blocks": ("counts of four stages", "Blocks of each stage."),
        "width": ("count", "Channels within the blocks of the first stage; 64 if left out."),
    },
    "oneOf": [{"required": ["depth"]}, {"required": ["block", "blocks"]}],
}
DEPTHS: dict[int, tuple[str, tuple[int, ...]]] = {
    18: ("basic", (2, 2, 2, 2)),
    34: ("basic", (3, 4, 6, 3)),
    50: ("bottleneck", (3, 4, 6, 3)),
    101: ("bottleneck", (3, 4, 23, 3)),
    152: ("bottleneck", (3, 8, 36, 3)),
}


def conv_bn(in_channels: int, channels: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """Return a convolution that keeps the resolution up to its stride, and its normalization."""
    conv = nn.Conv2d(in_channels, channels, kernel, stride, padding=kernel // 2, bias=False)
    return [conv, nn.BatchNorm2d(channels)]


class Block(nn.Module):
    """A residual block: a branch of convolutions, a shortcut, and ReLU after their sum."""

    expansion = 1

    def __init__(self, in_channels: int, width: int, stride: int) -> None:
        super().__init__()
        channels = width * self.expansion
        projects = stride != 1 or in_channels != channels
        self.shortcut = nn.Sequential(
            *conv_bn(in_channels, channels, 1, stride) if projects else []
        )
        self.relu = nn.ReLU()


class BasicBlock(Block):
    """Two 3x3 convolutions."""

    def __init__(self, in_channels: int, width: int, stride: int) -> None:
        super().__init__(in_channels, width, stride)
        self.conv1 = nn.Sequential(*conv_bn(in_channels, width, 3, stride), nn.ReLU())
        self.conv2 = nn.Sequential(*conv_bn(width, width, 3))

    def forward(self, x: Tensor) -> Tensor:
        """Return the feature map after the block."""
        branch = self.conv2(self.conv1(x))
        out: Tensor = self.relu(branch + self.shortcut(x))
        return out


class Bottleneck(Block):
    """A 3x3 convolution between two 1x1 convolutions that narrow and widen."""

    expansion = 4

    def __init__(self, in_channels: int, width: int, stride: int) -> None:
        super().__init__(in_channels, width, stride)
        self.conv1 = nn.Sequential(*conv_bn(in_channels, width, 1), nn.ReLU())
        self.conv2 = nn.Sequential(*conv_bn(width, width, 3, stride), nn.ReLU())
        self.conv3 = nn.Sequential(*conv_bn(width, width * self.expansion, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the feature map after the block."""
        branch = self.conv3(self.conv2(self.conv1(x)))
        out: Tensor = self.relu(branch + self.shortcut(x))
        return out


BLOCKS: dict[str, type[BasicBlock | Bottleneck]] = {"basic": BasicBlock, "bottleneck": Bottleneck}


class Classifier(nn.Module):
    """Global average pooling and a linear layer, if there are classes."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.dense = nn.Linear(channels, num_classes) if num_classes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        out: Tensor = self.dense(x.mean((2, 3)))
        return out


class ResNet(nn.Module):
    """A residual network with the module names of the published checkpoints."""

    def __init__(
        self, block: str, blocks: Sequence[int], width: int, num_classes: int, in_channels: int
    ) -> None:
        super().__init__()
        kind = BLOCKS[block]
        self.layer0 = nn.Sequential(*conv_bn(in_channels, width, 3), nn.ReLU())
        channels = width
        for stage, depth in enumerate(blocks):
            layers = []
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                layers.append(kind(channels, width * 2**stage, stride))
                channels = width * 2**stage * kind.expansion
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.classifier = nn.Sequential(Classifier(channels, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        for layer in self.children():
            x = layer(x)
        return x


def network(
    arch: Mapping[str, Any], num_classes: int, image_size: ImageSize, channels: int
) -> nn.Module:
    """Build a network of a published depth, or one of the given blocks."""
    block, blocks = DEPTHS[arch["depth"]] if "depth" in arch else (arch["block"], arch["blocks"])
    return ResNet(block, blocks, arch.get("width", 64), num_classes, channels)


FAMILY = Family(network)
