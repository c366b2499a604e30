"""The ResNets of the paper, ResNeXt, WideResNet, SE-ResNet and CBAM-ResNet, all in four stages."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from vitscope.networks.building.families._parts import (
    EXPANSION,
    branch_gate,
    conv_bn,
    drop_path,
    drop_rates,
    stem_pooling,
)
from vitscope.networks.building.family import WantedNetwork

ARCH = {
    "properties": {
        "depth": ("depth of a ResNet", "A network of the paper, by its depth."),
        "block": "usual",
        "blocks": "usual",
        "width": "usual",
        "stem": "usual",
        "groups": (
            "count",
            "Groups of the 3x3 convolution of a bottleneck (ResNeXt: 32); 1 if left out.",
        ),
        "group_width": (
            "count",
            "Channels of a group for each 64 of `width` (ResNeXt-50: 4, WideResNet: 128 with "
            "one group); 64 if left out.",
        ),
        "gate": {
            "description": "What weighs the result of a branch; nothing if left out.",
            "enum": ["se", "cbam"],
        },
        "drop_path_rate": "usual",
    },
    "oneOf": [{"required": ["depth"]}, {"required": ["block", "blocks"]}],
}
DEPTHS: dict[int, dict[str, Any]] = {
    18: {"block": "basic", "blocks": (2, 2, 2, 2)},
    34: {"block": "basic", "blocks": (3, 4, 6, 3)},
    50: {"block": "bottleneck", "blocks": (3, 4, 6, 3)},
    101: {"block": "bottleneck", "blocks": (3, 4, 23, 3)},
    152: {"block": "bottleneck", "blocks": (3, 8, 36, 3)},
}
DEFAULTS: dict[str, Any] = {
    "width": 64,
    "stem": False,
    "groups": 1,
    "group_width": 64,
    "gate": None,
    "drop_path_rate": 0.0,
}


class ResNetBlock(nn.Module):
    """A residual block: two 3x3 convolutions or a bottleneck, a shortcut, and ReLU at the end."""

    def __init__(
        self, in_channels: int, width: int, stride: int, arch: Mapping[str, Any], dropped: float
    ) -> None:
        super().__init__()
        channels, groups = width * EXPANSION[arch["block"]], arch["groups"]
        projects = stride != 1 or in_channels != channels
        self.shortcut = nn.Sequential(
            *conv_bn(in_channels, channels, 1, stride) if projects else []
        )
        self.relu = nn.ReLU()
        self.gate, self.sd = branch_gate(arch["gate"], channels), drop_path(dropped)
        self.narrows = arch["block"] == "bottleneck"
        if self.narrows:
            inner = max(1, width * arch["group_width"] // 64) * groups
            self.conv1 = nn.Sequential(*conv_bn(in_channels, inner, 1), nn.ReLU())
            self.conv2 = nn.Sequential(*conv_bn(inner, inner, 3, stride, groups), nn.ReLU())
            self.conv3 = nn.Sequential(*conv_bn(inner, channels, 1))
        else:
            self.conv1 = nn.Sequential(*conv_bn(in_channels, width, 3, stride), nn.ReLU())
            self.conv2 = nn.Sequential(*conv_bn(width, width, 3))

    def forward(self, x: Tensor) -> Tensor:
        branch = self.conv2(self.conv1(x))
        if self.narrows:
            branch = self.conv3(branch)
        out: Tensor = self.relu(self.sd(self.gate(branch)) + self.shortcut(x))
        return out


class ResNetClassifier(nn.Module):
    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.dense = nn.Linear(channels, num_classes) if num_classes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dense(x.mean((2, 3)))
        return out


class ResNet(nn.Sequential):
    """A residual network with the module names of the published checkpoints."""

    def __init__(self, arch: Mapping[str, Any], num_classes: int, in_channels: int) -> None:
        super().__init__()
        blocks, width = arch["blocks"], arch["width"]
        first = conv_bn(in_channels, width, *((7, 2) if arch["stem"] else (3,)))
        pooling = [stem_pooling()] if arch["stem"] else []
        self.layer0 = nn.Sequential(*first, nn.ReLU(), *pooling)
        channels, rates = width, drop_rates(arch["drop_path_rate"], blocks)
        for stage, depth in enumerate(blocks):
            layers = []
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                layers.append(ResNetBlock(channels, width * 2**stage, stride, arch, next(rates)))
                channels = width * 2**stage * EXPANSION[arch["block"]]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.classifier = nn.Sequential(ResNetClassifier(channels, num_classes))


def network(wanted: WantedNetwork) -> nn.Module:
    full = {**DEFAULTS, **DEPTHS.get(wanted.arch.get("depth", 0), {}), **wanted.arch}
    if full["block"] == "basic" and (full["groups"], full["group_width"]) != (1, 64):
        raise ValueError("`groups` and `group_width` are of bottlenecks")
    return ResNet(full, wanted.classes, wanted.channels)
