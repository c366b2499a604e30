"""Count the images that a network is given."""

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle


def count_images(network: nn.Module, counted: Callable[[int], object]) -> RemovableHandle:
    """Tell `counted` of each batch that a network is given how many images it has."""

    def count(module: nn.Module, args: Any, kwargs: Any) -> None:
        images = next((each for each in (*args, *kwargs.values()) if hasattr(each, "shape")), ())
        counted(len(images))

    return network.register_forward_pre_hook(count, with_kwargs=True)
