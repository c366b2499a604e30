"""AlexNet for small images, or with a stem for large ones."""

from collections import OrderedDict
from typing import Any

from torch import nn

from vitscope.networks.building.families.vgg import VggClassifier
from vitscope.networks.building.family import WantedNetwork

ARCH = {
    "properties": {
        "stem": (
            "flag",
            "Begin with an 11x11 convolution of stride 4; if false, with a 3x3 one of stride 2.",
        ),
        "width": (
            "count",
            "Channels of the first convolution; 64 if left out. The others have 3, 6, 4 and 4 "
            "times it.",
        ),
        "hidden": ("count", "Width of the layers before the last; 4096 if left out."),
    },
    "required": ["stem"],
}


def conv_relu(in_channels: int, channels: int, kernel: int, **options: Any) -> nn.Module:
    conv = nn.Conv2d(in_channels, channels, kernel, bias=False, **options)
    return nn.Sequential(OrderedDict(conv=conv, relu=nn.ReLU()))


class AlexNet(nn.Sequential):
    """An AlexNet with the module names of the paper's authors."""

    def __init__(
        self, width: int, hidden: int, stem: bool, num_classes: int, in_channels: int
    ) -> None:
        super().__init__()
        kernel, stride, padding = (11, 4, 2) if stem else (3, 2, 1)
        window, side = (3, 6) if stem else (2, 2)
        pools = [nn.MaxPool2d(window, stride=2) for _ in range(3)]
        first = conv_relu(in_channels, width, kernel, stride=stride, padding=padding)
        self.layer0 = nn.Sequential(first)
        self.layer1 = nn.Sequential(pools[0], conv_relu(width, 3 * width, 5, padding=2))
        self.layer2 = nn.Sequential(
            pools[1],
            conv_relu(3 * width, 6 * width, 3, padding=1),
            conv_relu(6 * width, 4 * width, 3, padding=1),
            conv_relu(4 * width, 4 * width, 3, padding=1),
        )
        features = VggClassifier(side * side * 4 * width, hidden, num_classes)
        self.classifier = nn.Sequential(pools[2], nn.AdaptiveAvgPool2d(side), features)


def network(wanted: WantedNetwork) -> nn.Module:
    width, hidden = wanted.arch.get("width", 64), wanted.arch.get("hidden", 4096)
    return AlexNet(width, hidden, wanted.arch["stem"], wanted.classes, wanted.channels)
