"""ResNets of timm, by name or by their blocks: a 7x7 stem with pooling, four stages."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from vitscope.networks.building.families._timm import build_timm
from vitscope.networks.building.family import Family
from vitscope.networks.building.timm_import import import_timm

ARCH = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"description": "One of timm's ResNets, such as `resnet50`.", "type": "string"},
        "block": {"description": "The kind of residual block.", "enum": ["basic", "bottleneck"]},
        "layers": {
            "description": "Blocks of each stage.",
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
            "minItems": 4,
            "maxItems": 4,
        },
        "drop_path_rate": {
            "description": "Stochastic depth in training, of the last block; 0 if left out.",
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 1,
        },
    },
    "oneOf": [{"required": ["name"]}, {"required": ["block", "layers"]}],
}


def network(arch: Mapping[str, Any], num_classes: int, image_size: int, channels: int) -> nn.Module:
    """Build one of timm's models, or one of the given blocks."""
    resnet = import_timm("timm.models.resnet")
    blocks = {"basic": resnet.BasicBlock, "bottleneck": resnet.Bottleneck}
    options = {**arch, "block": blocks[arch["block"]]} if "block" in arch else arch
    return build_timm(resnet.ResNet, options, num_classes=num_classes, in_chans=channels)


FAMILY = Family(network)
