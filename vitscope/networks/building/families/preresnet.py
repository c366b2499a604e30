"""Pre-activation ResNets: normalization and ReLU come before each convolution."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from vitscope.image_size import ImageSize
from vitscope.networks.building.families import alternet, resnet
from vitscope.networks.building.family import Family

ARCH = {
    "properties": {
        "depth": ("depth of a ResNet", "A network of the paper's authors, by its depth."),
        "block": "usual",
        "blocks": "usual",
        "width": "usual",
        "stem": "usual",
        "drop_path_rate": "usual",
    },
    "oneOf": [{"required": ["depth"]}, {"required": ["block", "blocks"]}],
}


def network(
    arch: Mapping[str, Any], num_classes: int, image_size: ImageSize, channels: int
) -> nn.Module:
    """Build an AlterNet without attention and with a shorter name for its stem."""
    blocks = resnet.DEPTHS.get(arch.get("depth", 0), {})
    full = {**alternet.DEFAULTS, **blocks, **arch, "attention": (0, 0, 0, 0)}
    model = alternet.AlterNet(full, num_classes, channels)
    model.add_module("layer0", model.layer0.layer0)
    return model


FAMILY = Family(network)
