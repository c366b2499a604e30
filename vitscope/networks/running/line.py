"""The line between the weights of two networks of one shape, and the plane of three."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from vitscope.files.arrays import Array
from vitscope.networks.building.networks import same_bytes


def _tensors_of_network(network: nn.Module) -> dict[str, Tensor]:
    named = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return {name: each.detach() for name, each in named.items()}


def why_no_line(one: nn.Module, other: nn.Module, names: tuple[str, str]) -> str | None:
    """Say in a sentence why two networks have no line between their weights; None if they do.

    `names` says how the sentence calls the networks.
    """
    ours, theirs = _tensors_of_network(one), _tensors_of_network(other)
    for name in {**ours, **theirs}:
        first, second = (
            f"the shape {'x'.join(map(str, each[name].shape)) or '1'}" if name in each else "none"
            for each in (ours, theirs)
        )
        if first != second:
            return (
                f"'{names[0]}' and '{names[1]}' have no line between their weights: '{name}' has "
                f"{first} in the first and {second} in the second, allowed: two networks whose "
                f"weights have the same names and shapes."
            )
    return None


@contextmanager
def moving_to(network: nn.Module, *others: nn.Module) -> Iterator[Callable[..., None]]:
    """Yield a function that moves a network by a share of the way to each other one.

    All numbers with a point move in place, running statistics too; tensors that are the same in
    all, and whole numbers such as counts of batches, stay those of the network, which is restored
    in the end.
    """
    ours, theirs = _tensors_of_network(network), [*map(_tensors_of_network, others)]
    start = {name: each.clone() for name, each in ours.items()}
    ends = {
        name: [each[name] for each in theirs]
        for name, each in start.items()
        if (each.is_floating_point() or each.is_complex())
        and not all(same_bytes(each, other[name]) for other in theirs)
    }

    def move(*shares: float) -> None:
        # Exact at each network.
        kept = 1 - sum(shares)
        for name, each in ours.items():
            moved = kept * start[name] if name in ends else start[name]
            for share, end in zip(shares, ends.get(name, ()), strict=False):
                moved = moved + share * end
            each.copy_(moved)

    try:
        yield move
    finally:
        for name, each in ours.items():
            each.copy_(start[name])


def triangle_of(first: nn.Module, *others: nn.Module) -> Array:
    """Return where three networks lie in their plane (3, 2), by Gram-Schmidt.

    The first is at 0, the second to its right, the third above both; distances are 2-norms of all
    parameters, without running statistics.
    """
    gram, named = np.zeros((2, 2)), [*map(_tensors_of_network, (first, *others))]
    for name, parameter in first.named_parameters():
        if parameter.is_floating_point():
            start, *ends = (each[name].cpu().double().flatten() for each in named)
            sides = torch.stack([end - start for end in ends])
            gram += (sides @ sides.T).numpy()
    length = float(np.sqrt(gram[0, 0]))
    along = gram[0, 1] / length if length else 0.0
    return np.array([[0, 0], [length, 0], [along, np.sqrt(max(gram[1, 1] - along**2, 0))]])


def running_norms(network: nn.Module) -> list[_BatchNorm]:
    """Return the modules that normalize, in evaluation, by statistics of batches of training."""
    norms = (each for each in network.modules() if isinstance(each, _BatchNorm))
    return [each for each in norms if each.running_mean is not None]


@contextmanager
def resetting_statistics(network: nn.Module) -> Iterator[None]:
    """Make running statistics the mean over the batches of all passes within a `with` block.

    All modules but those that have such statistics stay as they are, as in evaluation.
    """
    norms = running_norms(network)
    before = [(norm, norm.training, norm.momentum) for norm in norms]
    try:
        for norm in norms:
            norm.reset_running_stats()
            # Without a momentum, each batch counts as much.
            norm.training, norm.momentum = True, None
        yield
    finally:
        for norm, training, momentum in before:
            norm.training, norm.momentum = training, momentum
