"""What the studies of the documentation take for granted: a network of a user, in a file."""

from torch import nn

from vitscope.networks.building.family import find_family

# A small ResNet for the function that the README calls resnet20.
ARCH = {"block": "basic", "blocks": [1, 1, 1, 1], "width": 4}
MY_NET = f"""
from vitscope.networks.building.family import find_family


def resnet20():
    return find_family("resnet").build({ARCH}, 10, 32)
"""


def my_network() -> nn.Module:
    """Return the network that MY_NET makes."""
    return find_family("resnet").build(ARCH, 10, 32)
