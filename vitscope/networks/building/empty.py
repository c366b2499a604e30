"""Models that get their weights from a file, built without time spent on initialization."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.networks.building.compiler import is_compiled
from vitscope.networks.building.family import build_network, find_family

# What a study says of a network: `family`, `arch`, `classes`, `image_size`, and by the length of
# `mean` its channels.
Network = Mapping[str, Any]


def empty_network(network: Network) -> nn.Module:
    """Build the network of a model of a study, to be filled."""
    without_values = find_family(network["family"]).without_values
    device = torch.device("meta" if without_values else "cpu")
    with torch.random.fork_rng(devices=()), device:
        return _uncompiled(build_network(network))


def drawn_network(network: Network, seed: int = 0) -> nn.Module:
    """Build the network of a model of a study with its own values, drawn the same every time."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return _uncompiled(build_network(network))


def _uncompiled(model: nn.Module) -> nn.Module:
    """Let a network that compiles parts of itself run step by step, up to the end of the job."""
    if is_compiled(model):
        torch.compiler.set_stance("force_eager")
    return model


def parameter_names(network: Network) -> list[str]:
    """Return the names of the weights that training changes: all that are no buffers."""
    return [name for name, _ in empty_network(network).named_parameters()]


def fill(model: nn.Module, state_dict: Mapping[str, Tensor]) -> nn.Module:
    """Give a model its weights, and return it ready for inference.

    What no checkpoint stores is there already in a model with values, and computed in one without.
    """
    if any(tensor.is_meta for tensor in chain(model.parameters(), model.buffers())):
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
