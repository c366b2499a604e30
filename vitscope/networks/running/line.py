"""The straight line between the weights of two networks of one shape."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

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
def moving_to(network: nn.Module, other: nn.Module) -> Iterator[Callable[[float], None]]:
    """Yield a function that moves a network a share of the way to another; restore it in the end.

    All numbers with a point move in place, running statistics too; tensors that are the same in
    both, and whole numbers such as counts of batches, stay those of the network.
    """
    ours, theirs = _tensors_of_network(network), _tensors_of_network(other)
    start = {name: each.clone() for name, each in ours.items()}
    ends = {
        name: theirs[name]
        for name, each in start.items()
        if (each.is_floating_point() or each.is_complex()) and not same_bytes(each, theirs[name])
    }

    def move(share: float) -> None:
        for name, each in ours.items():
            end, began = ends.get(name), start[name]
            # Exact at both ends.
            each.copy_(began if end is None else (1 - share) * began + share * end)

    try:
        yield move
    finally:
        for name, each in ours.items():
            each.copy_(start[name])


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
