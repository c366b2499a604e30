"""Whether a network says the same of an image each time, whatever images are beside it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from vitscope.errors import VitscopeError, first_of, quoted
from vitscope.image_size import height_and_width
from vitscope.networks.building.outputs import tensors_of

SHOWN = 3
# By so many roundings of the largest value passes may differ: a GPU may add in another order.
ROUNDINGS = 64


def refuse_unrepeatable(
    network: nn.Module, settings: Mapping[str, Any], device: torch.device
) -> None:
    """Refuse a network two of whose passes differ, of an image that is noise."""
    shape = (1, len(settings["mean"]), *height_and_width(settings["image_size"]))
    image = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    if why := why_unrepeatable(network.eval().to(device), image.to(device)):
        raise VitscopeError(f"The network ({type(network).__name__}): {why}")


@torch.no_grad()
def why_unrepeatable(network: nn.Module, image: Tensor) -> str | None:
    """Return why two passes of one image (1, C, H, W) differ, in a sentence; None if they do not.

    The image has another one beside it in each pass.
    """
    batch = torch.cat([image, image.flip(-1)])
    with _keeping_random_numbers(image.device):
        one, other = network(batch), network(torch.cat([image, -image]))
        if all(map(_is_alike, tensors_of(one), tensors_of(other))):
            return None
        first, second = _trace(network, batch), _trace(network, batch)
    changed = next((one for one, two in zip(first, second, strict=False) if one != two), None)
    if changed:
        return (
            f"two passes of the same images differ, from the module {quoted(changed[0])} on: noise "
            f"or dropout is active in evaluation, so that all numbers are of one draw: switch it "
            f"off there, or draw it each time from a generator of one seed."
        )
    norms = [
        name
        for name, module in network.named_modules()
        if isinstance(module, _BatchNorm) and module.running_mean is None
    ]
    by = f", by {first_of(norms, SHOWN)}, which has no running statistics" if norms else ""
    return (
        f"what the network says of an image depends on the images beside it{by}: all numbers are "
        f"of one size of batches: let it normalize in evaluation by statistics that it keeps."
    )


def _is_alike(one: Tensor, other: Tensor) -> bool:
    """Tell whether the first image has the same values, but for rounding."""
    if (
        one.shape != other.shape
        or one.ndim == 0
        or len(one) != 2
        or not one.is_floating_point()
        or one.numel() == 0
    ):
        return True
    ours, theirs = (each[0].double().nan_to_num() for each in (one, other))
    eps = torch.finfo(one.dtype).eps
    tolerance = min(ROUNDINGS * eps, sqrt(eps))
    return bool(((ours - theirs).abs() <= tolerance * ours.abs().amax()).all())


def _trace(network: nn.Module, batch: Tensor) -> list[tuple[str, float]]:
    """Return the innermost modules in the order of their calls, each with a sum of its output."""
    called: list[tuple[str, float]] = []

    def note(name: str, output: Any) -> None:
        called.extend((name, float(each.double().sum())) for each in tensors_of(output))

    inner = [(name, each) for name, each in network.named_modules() if not [*each.children()]]
    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: note(name, output))
        for name, module in inner
    ]
    try:
        network(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return called


@contextmanager
def _keeping_random_numbers(device: torch.device) -> Iterator[None]:
    """Leave the next random numbers as they would have been."""
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus) if device.type in ("cpu", "cuda") else nullcontext():
        yield
