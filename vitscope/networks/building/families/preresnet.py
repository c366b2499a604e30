"""Pre-activation ResNets: normalization and ReLU come before each convolution."""

from torch import nn

from vitscope.networks.building.families import alternet, resnet
from vitscope.networks.building.family import WantedNetwork

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


def network(wanted: WantedNetwork) -> nn.Module:
    """Build an AlterNet without attention and with a shorter name for its stem."""
    blocks = resnet.DEPTHS.get(wanted.arch.get("depth", 0), {})
    full = {**alternet.DEFAULTS, **blocks, **wanted.arch, "attention": (0, 0, 0, 0)}
    model = alternet.AlterNet(full, wanted.classes, wanted.channels)
    model.add_module("layer0", model.layer0[0])
    return model
