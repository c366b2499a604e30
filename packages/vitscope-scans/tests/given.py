"""Networks as measures get them, and scans as networks call them."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from vim import Vim
from vitscope_scans.finding import calling

from vitscope.measures.given import OnModel
from vitscope.networks.finding.blocks import list_blocks

SIDE = 16


def as_given(network: nn.Module, size: int | tuple[int, int] = SIDE) -> OnModel:
    """Return what finds scans of a network; it reads no images."""
    settings = {"image_size": size, "mean": [0.0] * 3, "std": [1.0] * 3, "classes": 10}
    table, _, points, *_ = list_blocks("net", network.eval(), settings)
    nothing: Any = None
    return OnModel("net", network, points, nothing, torch.device("cpu"), settings, 2, table)


def drawn_call(
    channels: int, length: int, state: int, groups: int | None, seed: int = 0, **how: Any
) -> dict[str, Any]:
    """Return what a scan takes, in float64: B and C of groups, shared (0) or constant (None)."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    shape = {None: (channels, state), 0: (2, state, length)}.get(
        groups, (2, groups or 1, state, length)
    )
    delta = drawn(2, channels, length)
    return {
        "u": drawn(2, channels, length),
        "delta": delta if how.get("delta_softplus") else 0.3 * delta.abs(),
        "A": -drawn(channels, state).exp(),
        "B": drawn(*shape),
        "C": drawn(*shape),
        "D": drawn(channels),
        **how,
    }


@torch.no_grad()
def weights_by_loops(call: dict[str, Any], image: int, channels: range) -> Tensor:
    """Return the mean size of alpha by its definition, term by term."""
    delta = call["delta"] + (0 if call.get("delta_bias") is None else call["delta_bias"][:, None])
    delta = softplus(delta) if call.get("delta_softplus") else delta
    length, some = delta.shape[2], list(channels)
    steps, A = delta[image, some].double()[:, None], call["A"][some].double()
    B, C = (_by_channel(call, name, image)[some] for name in "BC")
    total = torch.zeros(length, length, dtype=torch.float64)
    for i in range(length):
        kept = torch.ones_like(A)
        for j in range(i, -1, -1):
            alpha = (C[..., i] * kept * steps[..., j] * B[..., j]).sum(1)
            total[i, j] = alpha.abs().mean()
            kept = kept * torch.exp(steps[..., j] * A)
    return total


def _by_channel(call: dict[str, Any], name: str, image: int) -> Tensor:
    given, (channels, length) = call[name].double(), call["delta"].shape[1:]
    if given.ndim == 2:
        return given[..., None].expand(-1, -1, length)
    groups = given[image] if given.ndim == 4 else given[image, None]
    return groups.repeat_interleave(channels // len(groups), 0)


def weights_of_vim(calls: list[dict[str, Any]], image: int) -> Tensor:
    """Return the weights of both directions between tokens, of which the class token is last."""
    every = range(calls[0]["u"].shape[1])
    forward, backward = (weights_by_loops(call, image, every) for call in calls)
    middle = len(forward) // 2
    order = torch.tensor([*range(middle), *range(middle + 1, len(forward)), middle])
    return (forward + backward.flip(0, 1))[order][:, order]


def weights_of_vmamba(call: dict[str, Any], image: int) -> Tensor:
    """Return the weights of four directions between the positions of a square map, by rows."""
    channels, length = call["u"].shape[1] // 4, call["u"].shape[2]
    rows = torch.arange(length)
    columns = rows.view(int(length**0.5), -1).T.ravel()
    total = torch.zeros(length, length, dtype=torch.float64)
    for scan, path in enumerate([rows, columns, rows.flip(0), columns.flip(0)]):
        of_scan = range(scan * channels, (scan + 1) * channels)
        total[path[:, None], path] += weights_by_loops(call, image, of_scan)
    return total


def weights_by_hand(network: nn.Module, images: Tensor) -> list[list[Tensor]]:
    """Return the weights of a Vim or a VMamba, of each of its blocks and of each image."""
    calls: list[Any] = []
    with calling(calls.append), torch.no_grad():
        network(images)
    numbers = range(len(images))
    if isinstance(network, Vim):
        pairs = [calls[first : first + 2] for first in range(0, len(calls), 2)]
        return [[weights_of_vim(pair, image) for image in numbers] for pair in pairs]
    return [[weights_of_vmamba(call, image) for image in numbers] for call in calls]
