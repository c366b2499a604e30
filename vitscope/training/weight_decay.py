"""Which parameters of a network are trained, and which decay."""

from torch import nn


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model that are trained, by name, in their order."""
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def decays(name: str, parameter: nn.Parameter) -> bool:
    """Tell whether a parameter decays: matrices and kernels do, biases and norms do not."""
    return parameter.ndim > 1 and not name.endswith(".bias")
