"""Which parameters decay in training: matrices and kernels, and neither biases nor norms."""

from typing import Any

from torch import nn

from vitscope.networks.building.timm_import import import_timm


def weight_decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the parameters in groups of an optimizer: those that decay and those that do not."""
    groups: list[dict[str, Any]] = import_timm("timm.optim").param_groups_weight_decay(
        model, weight_decay
    )
    return groups
