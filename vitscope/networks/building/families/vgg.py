"""VGGs for small images, with batch normalization after or before each convolution."""

from torch import Tensor, nn

from vitscope.networks.building.family import WantedNetwork

ARCH = {
    "properties": {
        "depth": {
            "description": "A network of the paper's authors, by its depth.",
            "enum": [11, 13, 16, 19],
        },
        "preactivation": (
            "flag",
            "Whether normalization and ReLU come before each convolution; false if left out.",
        ),
        "width": (
            "count",
            "Channels of the first stage; 64 if left out. The others have 2, 4, 8 and 8 times it.",
        ),
        "hidden": ("count", "Width of the layers before the last; 4096 if left out."),
    },
    "required": ["depth"],
}
# Number of convolutions in each stage, by depth.
LAYERS = {11: (1, 1, 2, 2, 2), 13: (2,) * 5, 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
# Channels of each stage, as multiples of `width`.
WIDTHS = (1, 2, 4, 8, 8)


class VggBlock(nn.Module):
    def __init__(self, in_channels: int, channels: int, preactivation: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(in_channels if preactivation else channels)
        self.relu = nn.ReLU()
        self.preactivation = preactivation

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = (
            self.conv(self.relu(self.bn(x)))
            if self.preactivation
            else self.relu(self.bn(self.conv(x)))
        )
        return out


class VggClassifier(nn.Module):
    def __init__(self, features: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.dense1, self.dense2 = nn.Linear(features, hidden), nn.Linear(hidden, hidden)
        self.dense3 = nn.Linear(hidden, num_classes) if num_classes else nn.Identity()
        self.relu, self.dropout = nn.ReLU(), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        for dense in (self.dense1, self.dense2):
            x = self.dropout(self.relu(dense(x.flatten(1))))
        out: Tensor = self.dense3(x)
        return out


def network(wanted: WantedNetwork) -> nn.Module:
    arch, channels, model = wanted.arch, wanted.channels, nn.Sequential()
    width, preactivation = arch.get("width", 64), arch.get("preactivation")
    for stage, (times, depth) in enumerate(zip(WIDTHS, LAYERS[arch["depth"]], strict=True)):
        layers: list[nn.Module] = [nn.MaxPool2d(2)] if stage else []
        for _ in range(depth):
            layers.append(VggBlock(channels, width * times, bool(preactivation)))
            channels = width * times
        model.add_module(f"layer{stage}", nn.Sequential(*layers))
    classifier = VggClassifier(7 * 7 * channels, arch.get("hidden", 4096), wanted.classes)
    model.add_module(
        "classifier", nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(7), classifier)
    )
    return model
