"""Swin transformers of timm, by name or by their dimensions."""

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
        "name": {
            "description": "One of timm's Swins, such as `swin_tiny_patch4_window7_224`.",
            "type": "string",
        },
        "patch_size": {
            "description": "Side of a patch, in pixels.",
            "type": "integer",
            "minimum": 1,
        },
        "window_size": {
            "description": "Side of the windows of attention, in tokens.",
            "type": "integer",
            "minimum": 1,
        },
        "embed_dim": {
            "description": "Channels of the first stage; each stage doubles them.",
            "type": "integer",
            "minimum": 1,
        },
        "depths": {
            "description": "Blocks of each stage.",
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
        },
        "num_heads": {
            "description": "Heads of an MSA, by stage.",
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
        },
        "mlp_ratio": {
            "description": "Hidden over outer width of the MLPs; 4 if left out.",
            "type": "number",
            "exclusiveMinimum": 0,
        },
        "qkv_bias": {
            "description": "Whether queries, keys and values have a bias; true if left out.",
            "type": "boolean",
        },
        "drop_path_rate": {
            "description": "Stochastic depth in training, of the last block; 0.1 if left out.",
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 1,
        },
    },
    "oneOf": [
        {"required": ["name"]},
        {"required": ["patch_size", "window_size", "embed_dim", "depths", "num_heads"]},
    ],
}


def network(arch: Mapping[str, Any], num_classes: int, image_size: int, channels: int) -> nn.Module:
    """Build one of timm's models, or one of the given dimensions."""
    transformer = import_timm("timm.models.swin_transformer").SwinTransformer
    return build_timm(
        transformer, arch, num_classes=num_classes, img_size=image_size, in_chans=channels
    )


FAMILY = Family(network)
