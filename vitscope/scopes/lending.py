"""A network that is lent for a measurement, and given back as it was."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import torch
from torch import nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building import networks
from vitscope.networks.building.networks import Output
from vitscope.networks.finding.dataflow_recorder import keeping_attributes


@contextmanager
def lend(network: nn.Module, *, logits: bool = False, output: Output = None) -> Iterator[nn.Module]:
    """Give a network in evaluation mode for a `with` block, then restore it, also after errors.

    This restores training modes, the devices and memory layouts of tensors, the objects that hold
    tensors, which tensors require a gradient, and what passes change even in evaluation: the values
    of buffers, such as observers and moving means, and attributes. Within the block, the network
    takes images of any type, and returns only its logits if `logits` is set, or the tensor that
    `output` names.
    """
    modes = {module: module.training for module in network.modules()}
    parameters = [(each, each.data, each.requires_grad, each.grad) for each in network.parameters()]
    buffers = [
        (module._buffers, name, buffer, None if buffer is None else buffer.detach().clone())
        for module in network.modules()
        for name, buffer in module._buffers.items()
    ]
    with keeping_attributes(network), ExitStack() as stack:
        stack.callback(_restore_lent_network, modes, parameters, buffers)
        stack.enter_context(networks.without_fast_path())
        if networks.is_compiled(network):
            stack.enter_context(networks.uncompiled())
        for hook in networks.adapt_input_and_output(network, logits=logits, output=output):
            stack.callback(hook.remove)
        yield network.eval()


def _restore_lent_network(modes: Any, parameters: Any, buffers: Any) -> None:
    for parameter, data, requires_grad, gradient in parameters:
        parameter.data = data
        parameter.requires_grad_(requires_grad)
        parameter.grad = gradient
    for owner, name, buffer, value in buffers:
        owner[name] = buffer
        if buffer is not None and not networks.same_bytes(buffer, value):
            with torch.no_grad():
                buffer.copy_(value)
    for module, training in modes.items():
        module.training = training


def choose_device_for_lending(
    network: nn.Module, wanted: torch.device | str | None
) -> torch.device:
    """Return the device to measure on, by default the network's; refuse one that does not exist.

    Refuse also a network that cannot be measured as it is, before anything of it is touched.
    """
    networks.refuse_unreadable_network(network)
    if any(each.is_meta for each in chain(network.parameters(), network.buffers())):
        raise VitscopeError(
            "The network has tensors on torch's meta device, which have no values: load its "
            "weights."
        )
    if wanted is None:
        return device_of(network)
    try:
        device = torch.device(wanted)
        torch.ones(1, device=device).cpu()
    except Exception as error:  # Every backend has errors of its own.
        raise VitscopeError(
            f"device: found {quoted(str(wanted))}, which this machine or its torch does not have, "
            f"allowed: 'cpu', or a device of torch that is there, such as 'cuda'."
        ) from error
    return device


def device_of(network: nn.Module) -> torch.device:
    tensor = next(chain(network.parameters(), network.buffers()), None)
    return torch.device("cpu") if tensor is None else tensor.device
