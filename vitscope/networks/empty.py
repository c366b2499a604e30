"""Models that get their weights from a file, built without time spent on initialization."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.networks.family import find_family

# What a study says of a network: `family`, `arch`, `classes` and `image_size`.
Network = Mapping[str, Any]


def build_empty(
    family: str, arch: Mapping[str, Any], num_classes: int, image_size: int
) -> nn.Module:
    """Build a model that has names and shapes and no values."""
    with torch.device("meta"):
        return find_family(family).build(arch, num_classes, image_size)


def empty_network(network: Network) -> nn.Module:
    """Build the network of a model of a study, without values."""
    return build_empty(
        network["family"], network["arch"], network["classes"], network["image_size"]
    )


def parameter_names(
    family: str, arch: Mapping[str, Any], num_classes: int, image_size: int
) -> list[str]:
    """Return the names of what training changes: of the weights, all that are no buffers."""
    model = build_empty(family, arch, num_classes, image_size)
    return [name for name, _ in model.named_parameters()]


def fill(model: nn.Module, state_dict: Mapping[str, Tensor]) -> nn.Module:
    """Give an empty model its weights, and return it ready for inference."""
    model.to_empty(device="cpu")
    for module in model.modules():
        _compute_buffers(module)
    model.load_state_dict(state_dict)
    return model.eval()


def _compute_buffers(module: nn.Module) -> None:
    """Compute the buffers that no checkpoint holds, by the method that timm's modules have."""
    compute = getattr(module, "init_non_persistent_buffers", None)
    if compute is not None:
        compute()
    elif any(module._buffers[name] is not None for name in module._non_persistent_buffers_set):
        raise NotImplementedError(
            f"{type(module).__name__} holds buffers that no checkpoint stores; "
            "give it a method init_non_persistent_buffers that computes them."
        )
