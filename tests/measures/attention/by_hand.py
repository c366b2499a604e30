"""Attention of golden networks in double precision, and its numbers, with nothing of vitscope's.

Fused attention is switched off in a copy of a network, and what goes through the dropouts of its
attention is kept; AlterNets have none, and there the softmax is computed from queries and keys.
Where positions are follows from the architectures as published, in pixels.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Array = npt.NDArray[np.float64]
WINDOW = 4


@dataclass(frozen=True)
class Seen:
    """Attention, (images, windows, heads, queries, keys), and where its tokens are.

    `places` are (windows, tokens, 2), of queries as of keys; `prefix` tokens before have none.
    """

    weights: Array
    places: Array
    prefix: int = 0

    def numbers(self) -> dict[str, Array]:
        spatial = self.weights[..., self.prefix :, self.prefix :]
        apart = self.places[:, :, None] - self.places[:, None]
        distances = np.sqrt((apart**2).sum(-1))[:, None]
        sums = spatial.sum(-1, keepdims=True)
        # Over images, windows and queries; all windows are of the same size.
        over = (0, 1, 3)
        return {
            "distance": (spatial * distances).sum(-1).mean(over),
            "distance_renormalized": (spatial / sums * distances).sum(-1).mean(over),
            "entropy": entropy(self.weights).mean(over),
            "nmi": nmi(spatial).mean((0, 1)),
        }


def entropy(shares: Array) -> Array:
    logs = np.log(np.where(shares > 0, shares, 1))
    return -(shares * logs).sum(-1)


def nmi(weights: Array) -> Array:
    """Return the mutual information of query and key over the root of their entropies."""
    raised = weights + 1e-8
    of_key = raised / raised.sum(-1, keepdims=True)
    marginal = entropy(of_key.mean(-2))
    information = marginal - entropy(of_key).mean(-1)
    return information / np.sqrt(marginal * np.log(weights.shape[-2]))


def grid(side: int, apart: int) -> Array:
    line = np.arange(side) * float(apart)
    return np.stack(np.meshgrid(line, line, indexing="ij"), -1)


def windows(places: Array) -> Array:
    """Cut a map into windows: (windows, tokens, 2)."""
    count = len(places) // WINDOW
    rows = np.split(places, count, 0)
    cut = [window for row in rows for window in np.split(row, count, 1)]
    return np.stack(cut).reshape(-1, WINDOW**2, 2)


def seen(name: str, model: nn.Module, images: Tensor) -> list[Seen]:
    copied = deepcopy(model).double().eval()
    for module in copied.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False
    kept: list[Array] = []
    find = _of_alternet if name == "alternet_50" else _of_timm
    with torch.no_grad():
        for module, hook in find(copied, kept):
            module.register_forward_hook(hook)
        copied(images.double())
    return [*_placed(name, kept, len(images))]


def _of_timm(model: nn.Module, kept: list[Array]) -> Iterator[tuple[nn.Module, object]]:
    for name, module in model.named_modules():
        if name.endswith("attn_drop"):
            yield module, lambda _, args, output: kept.append(output.numpy())


def _of_alternet(model: nn.Module, kept: list[Array]) -> Iterator[tuple[nn.Module, object]]:
    def hook(module: nn.Module, args: tuple[Tensor, Tensor], output: Tensor) -> None:
        maps, bias = args
        count, heads = len(maps), module.heads
        # Channels are those of one head after another, keys before values.
        queries = module.to_q(maps).numpy().reshape(count, heads, -1, WINDOW**2)
        keys = module.to_kv(maps)[:, : heads * queries.shape[2]].numpy().reshape(queries.shape)
        scores = np.einsum("nhdq,nhdk->nhqk", queries, keys) / np.sqrt(queries.shape[2])
        exponentials = np.exp(scores + bias.numpy())
        kept.append(exponentials / exponentials.sum(-1, keepdims=True))

    for module in model.modules():
        if hasattr(module, "to_kv"):
            yield module, hook


def _placed(name: str, kept: list[Array], images: int) -> Iterator[Seen]:
    for number, weights in enumerate(kept):
        if name == "vit_ti":
            yield Seen(weights[:, None], grid(16, 2).reshape(1, -1, 2), 1)
        elif name == "pit_ti":
            side, apart = {0: (31, 1), 1: (16, 2), 2: (8, 4)}[(number >= 2) + (number >= 8)]
            yield Seen(weights[:, None], grid(side, apart).reshape(1, -1, 2), 1)
        elif name == "swin_ti":
            stage = sum(number >= first for first in (2, 4, 10))
            side, apart = 32 // 2**stage, 2**stage
            # Every second block is rolled by half a window, but where one window is all.
            rolled = -WINDOW // 2 if number % 2 and side > WINDOW else 0
            places = windows(np.roll(grid(side, apart), (rolled, rolled), (0, 1)))
            yield Seen(weights.reshape(images, -1, *weights.shape[1:]), places)
        else:
            stage = {0: 1, 1: 2, 2: 2, 3: 2, 4: 3, 5: 3}[number]
            places = windows(grid(32 // 2**stage, 2**stage))
            yield Seen(weights.reshape(images, -1, *weights.shape[1:]), places)
