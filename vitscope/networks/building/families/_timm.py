"""What the families have in common that timm implements."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from vitscope.errors import VitscopeError, nearest
from vitscope.networks.building.timm_import import import_timm


def build_timm(network: type[nn.Module], arch: Mapping[str, Any], **options: Any) -> nn.Module:
    """Build the model of timm that `arch` names, or else a `network` of the given dimensions."""
    options = {**arch, **options}
    name = options.pop("name", None)
    if name is None:
        return network(**options)
    timm = import_timm()
    if not timm.is_model(name):
        raise VitscopeError(f"timm has no model '{name}'.{nearest(name, timm.list_models())}")
    # Looked at before it is built, because networks of another kind refuse our options.
    with torch.device("meta"):
        kind = type(timm.create_model(name))
    if not issubclass(kind, network):
        raise VitscopeError(
            f"The model '{name}' of timm is a {kind.__name__} and not a {network.__name__}; "
            "choose the family that fits it."
        )
    model: nn.Module = timm.create_model(name, **options)
    return model
