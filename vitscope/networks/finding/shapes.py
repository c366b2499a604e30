"""Run a network on shapes alone: on torch's meta device, with or without weights."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from vitscope.errors import VitscopeError
from vitscope.image_size import height_and_width
from vitscope.networks.building.outputs import own_type
from vitscope.networks.finding.dataflow import record

# Runs a network.
Run = Callable[[Tensor], Any]
Made = TypeVar("Made")


def blank_images(
    model: nn.Module, network: Mapping[str, Any], device: torch.device | str = "cpu"
) -> Tensor:
    """Return two blank images for a model, which a study describes as `network`."""
    shape = (2, len(network["mean"]), *height_and_width(network["image_size"]))
    return torch.zeros(shape, dtype=own_type(model), device=device)


def on_shapes(
    model: nn.Module, network: Mapping[str, Any], make: Callable[[Run, Tensor], Made]
) -> Made:
    """Return what is made of a network and two blank images, which a study describes.

    Nothing is computed where the network can run on shapes alone; else it runs on a CPU.
    """
    try:
        with keeping_attributes(model):
            return make(_without_values(model), blank_images(model, network, "meta"))
    except VitscopeError:
        raise
    except Exception:
        if any(tensor.is_meta for tensor in model.parameters()):
            raise
        # Tensors that are no parameters stay where they are, and values may decide what is done.
        _refuse_choices(model, network)
        return make(model, blank_images(model, network))


def _refuse_choices(model: nn.Module, network: Mapping[str, Any]) -> None:
    """Refuse a network that does something else for other images: it has no one list of points."""
    blank = blank_images(model, network)
    noise = torch.randn(blank.shape, generator=torch.Generator().manual_seed(0)).to(blank)
    paths = set()
    for images in (blank, noise, noise + 2, noise - 2):
        operations = record(model, images).operations
        paths.add(tuple((operation.name, operation.module) for operation in operations))
    if len(paths) > 1:
        raise VitscopeError(
            "the network does other things for other images: one that chooses its path by the "
            "images cannot be read; a part of it that does not, such as its backbone, can."
        )


@contextmanager
def keeping_attributes(model: nn.Module) -> Iterator[None]:
    """Give modules back what they had of their own: what they keep of shapes has no values."""
    of_torch = vars(nn.Module()).keys()
    modules = [vars(module) for module in model.modules()]
    kept = [(each, {name: each[name] for name in each.keys() - of_torch}) for each in modules]
    contents = [
        (value, copy(value))
        for _, before in kept
        for value in before.values()
        if isinstance(value, dict | list)
    ]
    try:
        yield
    finally:
        for attributes, before in kept:
            for name in attributes.keys() - of_torch:
                del attributes[name]
            attributes.update(before)
        for value, content in contents:
            value.clear()
            value.update(content) if isinstance(value, dict) else value.extend(content)


def _without_values(model: nn.Module) -> Run:
    """Return what runs a network on shapes without values."""
    return running_on(model, without_values(model))


def running_on(model: nn.Module, tensors: Mapping[str, Tensor]) -> Run:
    """Return what runs a network with other tensors in place of its own, by `own_tensors`."""
    return partial(functional_call, model, dict(tensors), tie_weights=False)


def without_values(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a network without values; one that modules share stays shared."""
    empty: dict[int, Tensor] = {}
    return {
        name: empty.setdefault(id(tensor), tensor.detach().to("meta"))
        for name, tensor in own_tensors(model).items()
    }


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return what each module of a network owns, by the first name of the module.

    So each tensor of each stands once: torch does not give back what it has replaced twice.
    """
    return {
        f"{prefix}.{name}".lstrip("."): tensor
        for prefix, module in model.named_modules()
        for name, tensor in (
            *module.named_parameters(recurse=False, remove_duplicate=False),
            *module.named_buffers(recurse=False, remove_duplicate=False),
        )
    }
