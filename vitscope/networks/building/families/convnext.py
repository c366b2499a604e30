"""ConvNeXts of timm, by name or by their dimensions."""

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
        "name": ("text", "One of timm's ConvNeXts, such as `convnext_tiny`."),
        "patch_size": ("count", "Side of a patch of the stem, in pixels."),
        "depths": ("counts of four stages", "Blocks of each stage."),
        "dims": ("counts of four stages", "Channels of each stage."),
        "drop_path_rate": (
            "share",
            "Stochastic depth in training, of the last block; 0 if left out.",
        ),
    },
    "oneOf": [{"required": ["name"]}, {"required": ["patch_size", "depths", "dims"]}],
}


def network(arch: Mapping[str, Any], num_classes: int, image_size: int, channels: int) -> nn.Module:
    """Build one of timm's models, or one of the given dimensions."""
    convnext = import_timm("timm.models.convnext").ConvNeXt
    return build_timm(convnext, arch, num_classes=num_classes, in_chans=channels)


FAMILY = Family(network)
