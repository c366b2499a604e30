"""ResNets of timm, by name or by their blocks, with a 7x7 stem, pooling and four stages."""

from torch import nn

from vitscope.networks.building.families._parts import build_timm
from vitscope.networks.building.family import WantedNetwork
from vitscope.networks.building.timm_import import import_timm

ARCH = {
    "properties": {
        "name": ("text", "One of timm's ResNets, such as `resnet50`."),
        "block": ("residual block", "The kind of residual block."),
        "layers": ("blocks of four stages", "Blocks of each stage."),
        "drop_path_rate": "usual",
    },
    "oneOf": [{"required": ["name"]}, {"required": ["block", "layers"]}],
}


def network(wanted: WantedNetwork) -> nn.Module:
    resnet = import_timm("timm.models.resnet")
    blocks = {"basic": resnet.BasicBlock, "bottleneck": resnet.Bottleneck}
    kind = wanted.arch.get("block")
    block = {"block": blocks[kind]} if kind else {}
    return build_timm(resnet.ResNet, wanted, **block)
