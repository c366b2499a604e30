"""What the studies of the documentation take for granted: a network of a user, in a file."""

from torch import nn

from vitscope.networks.family import family_names, find_family

# A small ResNet for the function that the README calls resnet20.
ARCH = {"block": "basic", "blocks": [1, 1, 1, 1], "width": 4}
MY_NET = f"""
from vitscope.networks.family import find_family


def resnet20():
    return find_family("resnet").build({ARCH}, 10, 32)
"""
# Where these families are not there yet, others stand for them.
STANDING_IN = {
    "python": {
        "family: python, arch: {file: my_net.py, make: resnet20}": f"family: resnet, arch: {ARCH}",
        "family: python\n    arch: {file: ours.py, make: our_net, width: 64}": (
            "family: resnet\n    arch: {depth: 18}"
        ),
    },
    "timm": {"family: timm": "family: vit"},
}


def my_network() -> nn.Module:
    """Return the network that MY_NET makes."""
    return find_family("resnet").build(ARCH, 10, 32)


def readable(study: str) -> str:
    """Return a study of the documentation as the families that there are can read it."""
    for family, changes in STANDING_IN.items():
        for told, meant in changes.items() if family not in family_names() else ():
            study = study.replace(told, meant)
    return study
