from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tests.drawn.board import Attended, Sum
from tests.drawn.modules import BetweenModule, Drawn
from tests.drawn.places import Place
from tests.drawn.specs import Network
from vitscope.networks.building.networks import without_fast_path

IMAGES = 48
# Logits before they are brought to the same size.
LARGE = 1e4


@dataclass(frozen=True)
class Truth:
    """What is true: logits, and without each sum's branches; the sums, and what stands before.

    `entries` are the stem and what makes the map smaller: a name, the stream, and its place;
    `between` are modules without residuals; `unclear` is what cannot be measured, and where: it is
    to be told.
    """

    logits: Tensor
    sums: list[Sum]
    without: list[Tensor]
    entries: list[tuple[str, Tensor, Place]]
    attended: list[Attended]
    parameters: int
    operations: int
    unclear: list[tuple[str, str]]
    between: list[str]


def logits_of(output: Any) -> Tensor:
    logits: Tensor = output["logits"] if isinstance(output, dict) else output
    return logits


def build(spec: Network) -> tuple[Drawn, Tensor, Tensor]:
    """Return a network with weights by which its branches matter, images, and their labels."""
    torch.manual_seed(spec.seed)
    network = Drawn(spec).eval()
    images = torch.randn(IMAGES, 3, spec.size, spec.size)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 1.4 / parameter[0].numel() ** 0.5)
            else:
                parameter.add_(0.2 * torch.randn_like(parameter))
        for module in network.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                module.momentum = None
        network.train()(images)
        network.eval()
        while not logits_of(network(images)).abs().amax() < LARGE:
            # Gates and loops multiply: without this some would not be finite.
            for parameter in network.parameters():
                parameter.mul_(0.8)
        # Every class is found of some images.
        head = network.head.linear
        head.weight.div_(logits_of(network(images)).std(0)[:, None] + 1e-6)
        head.bias.zero_()
        head.bias.sub_(logits_of(network(images)).mean(0))
        labels = logits_of(network(images)).argmax(1)
    flipped = torch.rand(IMAGES) < 0.25
    return network, images, labels.where(~flipped, torch.randint(spec.classes, (IMAGES,)))


@torch.no_grad()
def truth_of(network: Drawn, images: Tensor) -> Truth:
    # One operation after the other: a network of rounding errors differs.
    with without_fast_path():
        with network.board.watching() as board:
            logits = logits_of(network(images))
            sums, entries, attended = board.sums, board.entries, board.attended
        without = []
        for index in range(len(sums)):
            with network.board.watching(index):
                without.append(logits_of(network(images)))
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            network(images[:1])
    parameters = sum(
        each.numel() for name, each in network.named_parameters() if "unused" not in name
    )
    between = [m.path for m in network.modules() if isinstance(m, BetweenModule)]
    unclear = [(m.unclear, m.path) for m in network.modules() if getattr(m, "unclear", "")]
    operations = counter.get_total_flops() // 2
    return Truth(logits, sums, without, entries, attended, parameters, operations, unclear, between)


def variance_of(tokens: Tensor, place: Place) -> float:
    """Return the unbiased variance over positions, its mean over channels and images."""
    return float(place.split(tokens)[1].double().var(1).mean())


def ratios_of(each: Sum) -> dict[str, float]:
    """Return the geometric mean of the norm of the stream over that of the branch."""
    place, sides = each.place, (each.stream, each.branch)
    parts = {"positions": [place.split(side)[1] for side in sides]}
    if place.front or place.back:
        first = 0 if place.front else place.tokens - place.back
        parts["class_token"] = [side[:, first] for side in sides]
    found = {}
    for kind, pair in parts.items():
        stream, branch = (side.double().flatten(1).norm(dim=1).log() for side in pair)
        ratio = float((stream - branch).mean().exp())
        found[kind] = ratio if np.isfinite(ratio) else np.nan
    return found


def numbers_of(attended: Attended) -> tuple[float, float]:
    """Return the mean distance of keys from queries in pixels, and the entropy in nats."""
    weights = attended.weights.double()
    entropy = -(weights * weights.clamp_min(1e-300).log()).sum(-1).mean()
    queries, keys = (torch.from_numpy(each) for each in (attended.queries, attended.keys))
    distances = torch.cdist(queries, keys)
    placed = ~queries[..., 0].isnan()
    distances = distances.nan_to_num(0.0)
    if keys[..., 0].isnan().all() or not placed.any():
        return np.nan, float(entropy)
    while distances.ndim < 4:
        distances = distances[None]
    # (images, windows, heads, queries): windows are in dimension 1, heads share their places.
    far = (weights * distances.reshape(1, -1, 1, *distances.shape[-2:])).sum(-1)
    queries = placed if placed.ndim == 1 else placed[0]
    return float(far[..., queries].mean()), float(entropy)
