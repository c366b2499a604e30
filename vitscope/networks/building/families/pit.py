"""PiT, the pooling-based vision transformer of timm, by name or by its dimensions."""

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
        "name": {"description": "One of timm's PiTs, such as `pit_ti_224`.", "type": "string"},
        "patch_size": {
            "description": "Side of a patch, in pixels.",
            "type": "integer",
            "minimum": 1,
        },
        "stride": {
            "description": "Distance of patches, in pixels.",
            "type": "integer",
            "minimum": 1,
        },
        "base_dims": {
            "description": "Channels of a head, by stage.",
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
        },
        "depth": {
            "description": "Blocks of each stage.",
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
        },
        "heads": {
            "description": "Heads of an MSA, by stage.",
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
        },
        "mlp_ratio": {
            "description": "Hidden over outer width of the MLPs; 4 if left out.",
            "type": "number",
            "exclusiveMinimum": 0,
        },
        "drop_path_rate": {
            "description": "Stochastic depth in training, of the last block; 0 if left out.",
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 1,
        },
    },
    "oneOf": [
        {"required": ["name"]},
        {"required": ["patch_size", "stride", "base_dims", "depth", "heads"]},
    ],
}


def network(arch: Mapping[str, Any], num_classes: int, image_size: int, channels: int) -> nn.Module:
    """Build one of timm's models, or one of the given dimensions."""
    transformer = import_timm("timm.models.pit").PoolingVisionTransformer
    return build_timm(
        transformer, arch, num_classes=num_classes, img_size=image_size, in_chans=channels
    )


FAMILY = Family(network)
