"""ResNets of timm, by name or by their blocks: a 7x7 stem with pooling, four stages."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from vitscope.image_size import ImageSize
from vitscope.networks.building.families._parts import build_timm
from vitscope.networks.building.family import Family
from vitscope.networks.building.timm_import import import_timm

ARCH = {
    "properties": {
        "name": ("text", "One of timm's ResNets, such as `resnet50`."),
        "block": ("residual block", "The kind of residual block."),
        "layers": ("counts of four stages", "Blocks of each stage."),
        "drop_path_rate": "usual",
    },
    "oneOf": [{"required": ["name"]}, {"required": ["block", "layers"]}],
}


def network(
    arch: Mapping[str, Any], num_classes: int, image_size: ImageSize, channels: int
) -> nn.Module:
    resnet = import_timm("timm.models.resnet")
    blocks = {"basic": resnet.BasicBlock, "bottleneck": resnet.Bottleneck}
    options = {**arch, "block": blocks[arch["block"]]} if "block" in arch else arch
    return build_timm(resnet.ResNet, options, num_classes=num_classes, in_chans=channels)


FAMILY = Family(network)
