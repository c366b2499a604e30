"""Which parameters of a network decay."""

from torch import nn


def decays(name: str, parameter: nn.Parameter) -> bool:
    """Tell whether a parameter decays: matrices and kernels do, biases and norms do not."""
    return parameter.ndim > 1 and not name.endswith(".bias")
