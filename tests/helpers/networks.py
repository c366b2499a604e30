from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.studies import bundled
from vitscope.image_size import ImageSize
from vitscope.networks.building.networks import (
    NetworkEntry,
    empty_network,
    find_family,
    uninitialized_network,
)
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint

MINI: dict[str, dict[str, Any]] = bundled("mini")["models"]
# One of each family, and of each kind: the others have the same settings with other numbers.
FAMILIES = {model["family"]: name for name, model in reversed(MINI.items())}
KINDS = {(model["family"], *model["arch"]): name for name, model in reversed(MINI.items())}
every_mini = pytest.mark.parametrize("name", KINDS.values())


def build_empty(
    family: str,
    arch: Mapping[str, Any],
    num_classes: int | None,
    image_size: ImageSize,
    channels: int = 3,
    build: Callable[[NetworkEntry], nn.Module] = empty_network,
) -> nn.Module:
    """Build a model that has names and shapes and, where its family can, no values."""
    mean = [0.0] * channels
    described = {"family": family, "arch": arch, "image_size": image_size, "mean": mean}
    return build({**described, "classes": num_classes})


# Builds a model that weights are loaded into.
build_undrawn = partial(build_empty, build=uninitialized_network)


def build_empty_mini(name: str) -> nn.Module:
    return build_empty(MINI[name]["family"], MINI[name]["arch"], 10, 32)


def described(image_size: ImageSize = 32, channels: int = 3) -> dict[str, Any]:
    """Return what a study says of the images of a network."""
    return {"image_size": image_size, "mean": [0.5] * channels}


def mini(name: str, seed: int = 0) -> tuple[nn.Module, list[CutPoint]]:
    """Return a model of the bundled study with random weights, and its cut points."""
    torch.manual_seed(seed)
    family = find_family(MINI[name]["family"])
    model = family.build(MINI[name]["arch"], 10, 32).eval()
    return model, mini_blocks(name).points


@cache
def mini_blocks(name: str) -> Blocks:
    """Return the blocks of a model of the bundled study, which do not depend on its weights."""
    return list_blocks(name, build_empty_mini(name), described())


@torch.no_grad()
def read(
    model: nn.Module, points: Sequence[CutPoint], images: Tensor, copied: bool = True
) -> tuple[Any, list[Tensor]]:
    """Return what a network returns, and the maps at all cut points, in the order of these."""
    maps: list[Tensor] = []

    def keep(index: int, latent: Tensor) -> None:
        assert index == len(maps)
        maps.append(latent.clone() if copied else latent)

    with capturing(model, points, keep):
        return model(images), maps


def hooks_of(model: nn.Module) -> list[dict[int, object]]:
    return [{**each._forward_hooks, **each._forward_pre_hooks} for each in model.modules()]
