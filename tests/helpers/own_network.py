"""What the studies of the documentation take for granted: a network of a user, in a file."""

from typing import Any

from torch import nn

from vitscope.networks.building.networks import find_family

# A small ResNet for the function that the README calls resnet20.
ARCH = {"block": "basic", "blocks": [1, 1, 1, 1], "width": 4}
MY_NET = f"""
from vitscope.networks.building.networks import find_family


def resnet20():
    return find_family("resnet").build({ARCH}, 10, 32)
"""


# A study of it, which is made by the function.
STUDY: dict[str, Any] = {
    "title": "mine",
    "data": {
        "mine": {
            "source": {"kind": "shapes32"},
            "classes": 10,
            "image_size": 32,
            "mean": [0.5, 0.5, 0.5],
            "std": [0.5, 0.5, 0.5],
            "splits": {"test": {"images": 10}},
        }
    },
    "models": {
        "mine": {
            "family": "python",
            "arch": {"file": "my_net.py", "make": "resnet20"},
            "data": "mine",
            "checkpoint": {"made": True},
        }
    },
    "figures": {"fig9": {"kind": "feature_variance", "models": ["mine"]}},
}


def my_network() -> nn.Module:
    return find_family("resnet").build(ARCH, 10, 32)
