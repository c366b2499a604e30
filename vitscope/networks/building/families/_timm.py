"""What the families have in common that timm implements."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from vitscope.errors import VitscopeError, nearest
from vitscope.image_size import ImageSize
from vitscope.networks.building.family import Family
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


def of_timm(module: str, network: str, *, sized: bool = True) -> Family:
    """Return the family of a class of timm: its models by name, or of the given dimensions.

    A network that is `sized` is built for images of one size.
    """

    def build(
        arch: Mapping[str, Any], num_classes: int, image_size: ImageSize, channels: int
    ) -> nn.Module:
        kind = getattr(import_timm(f"timm.models.{module}"), network)
        size = {"img_size": image_size} if sized else {}
        return build_timm(kind, arch, num_classes=num_classes, in_chans=channels, **size)

    return Family(build)
