"""Parts that several families share."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from vitscope.errors import VitscopeError, nearest
from vitscope.networks.building.family import WantedNetwork
from vitscope.networks.building.timm_import import import_timm


def build_timm(network: type[nn.Module], wanted: WantedNetwork, **options: Any) -> nn.Module:
    """Build the timm model that `arch` names or, without a name, a `network` of its dimensions."""
    given = {"num_classes": wanted.classes, "in_chans": wanted.channels}
    options = {**wanted.arch, **given, **options}
    name = options.pop("name", None)
    if name is None:
        return network(**options)
    timm = import_timm()
    if not timm.is_model(name):
        raise VitscopeError(f"timm has no model '{name}'.{nearest(name, timm.list_models())}")
    # Check the class before building, because networks of other classes refuse our options.
    with torch.device("meta"):
        kind = type(timm.create_model(name))
    if not issubclass(kind, network):
        raise VitscopeError(
            f"The model '{name}' of timm is a {kind.__name__} and not a {network.__name__}; "
            "choose the family that fits it."
        )
    model: nn.Module = timm.create_model(name, **options)
    return model


def timm_builder(
    module: str, network: str, *, sized: bool = True
) -> Callable[[WantedNetwork], nn.Module]:
    """Return a function that builds a timm network; a `sized` class takes the image size."""

    def build(wanted: WantedNetwork) -> nn.Module:
        kind = getattr(import_timm(f"timm.models.{module}"), network)
        return build_timm(kind, wanted, **({"img_size": wanted.image_size} if sized else {}))

    return build


# Output channels of a residual block, as a multiple of its width.
EXPANSION = {"basic": 1, "bottleneck": 4}
# Input channels of a gate per hidden channel.
REDUCTION = 16


def conv_bn(
    in_channels: int, channels: int, kernel: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    """Return a convolution, padded so that only its stride reduces the size, and its batch norm."""
    conv = nn.Conv2d(in_channels, channels, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(channels)]


def stem_pooling() -> nn.Module:
    return nn.MaxPool2d(3, stride=2, padding=1)


def drop_rates(last: float, blocks: Sequence[int]) -> Iterator[float]:
    """Return each block's probability of dropping its branch in training, from 0 up to `last`."""
    count = sum(blocks)
    return (last * number / max(1, count - 1) for number in range(count))


def drop_path(rate: float) -> nn.Module:
    return import_timm("timm.layers").DropPath(rate) if rate else nn.Identity()


class ChannelGate(nn.Module):
    """Weighs channels by their means (squeeze and excitation), or by means and maxima (CBAM)."""

    def __init__(self, channels: int, maxima: bool) -> None:
        super().__init__()
        narrow = max(1, channels // REDUCTION)
        self.maxima = maxima
        self.ff = nn.Sequential(
            nn.Linear(channels, narrow, bias=False),
            nn.ReLU(),
            nn.Linear(narrow, channels, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        weights = self.ff(x.mean((2, 3)))
        if self.maxima:
            weights = (weights + self.ff(x.amax((2, 3)))) / 2
        out: Tensor = x * weights.sigmoid()[:, :, None, None]
        return out


class SpatialGate(nn.Module):
    """Weighs positions by the mean and the maximum of their channels."""

    def __init__(self) -> None:
        super().__init__()
        self.ff = nn.Sequential(*conv_bn(2, 1, 7))

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], dim=1)
        out: Tensor = x * self.ff(seen).sigmoid()
        return out


def branch_gate(kind: str | None, channels: int) -> nn.Module:
    """Return the gate of this kind for the end of a branch; None gives the identity."""
    if kind is None:
        return nn.Identity()
    gate = ChannelGate(channels, maxima=kind == "cbam")
    return nn.Sequential(gate, SpatialGate()) if kind == "cbam" else gate


def keys_in_windows(rows: int, columns: int, window: int, prefix: int) -> Tensor:
    """Return a mask (queries, keys), true for keys in a query's window and for prefix tokens."""
    # A window with an even side reaches one position farther down and to the right.
    before = (window - 1) // 2
    row, column = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).T
    near = torch.ones(rows * columns, rows * columns, dtype=torch.bool)
    for place in (row, column):
        offset = place[None, :] - place[:, None]
        near &= (offset >= -before) & (offset < window - before)
    return nn.functional.pad(near, (prefix, 0, prefix, 0), value=True)


def taps_of_pairs(rows: int, columns: int, window: int) -> Tensor:
    """Return the tap (queries, keys) of a convolution, or window² for keys out of the window."""
    before = (window - 1) // 2
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    taps = places[None, :] - places[:, None] + before
    inside = ((taps >= 0) & (taps < window)).all(2)
    return (taps[..., 0] * window + taps[..., 1]).masked_fill(~inside, window**2)


class Windowed(nn.Module):
    """Holds the mask to add to attention scores: 0 where a query sees a key, -inf elsewhere."""

    mask: Tensor

    def __init__(self, grid: tuple[int, int], window: int, prefix: int) -> None:
        super().__init__()
        seen = keys_in_windows(*grid, window, prefix)
        mask = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)
        self.register_buffer("mask", mask, persistent=False)


class LocalAttention(Windowed):
    """Attends within a window, using the layers of the timm attention that it replaces."""

    def __init__(self, replaced: Any, grid: tuple[int, int], window: int, prefix: int) -> None:
        super().__init__(grid, window, prefix)
        self.num_heads, self.scale = replaced.num_heads, replaced.scale
        self.fused_attn = replaced.fused_attn
        self.qkv, self.proj = replaced.qkv, replaced.proj

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        query, key, value = (
            self.qkv(x).unflatten(2, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        )
        if self.fused_attn:
            attended = scaled_dot_product_attention(query, key, value, self.mask)
        else:
            scores = (query * self.scale) @ key.transpose(2, 3) + self.mask
            attended = scores.softmax(dim=3) @ value
        out: Tensor = self.proj(attended.transpose(1, 2).flatten(2))
        return out


class PositionMixing(Windowed):
    """Averages values over a window, equally or with learned weights for pairs of positions."""

    def __init__(
        self, replaced: Any, grid: tuple[int, int], window: int, prefix: int, learned: bool
    ) -> None:
        super().__init__(grid, window, prefix)
        tokens, channels = prefix + grid[0] * grid[1], replaced.proj.in_features
        self.num_heads = replaced.num_heads
        self.value = nn.Linear(channels, channels, bias=replaced.qkv.bias is not None)
        _draw_linear(self.value)
        shape = (self.num_heads, tokens, tokens)
        self.scores = nn.Parameter(torch.zeros(shape)) if learned else None
        self.proj = replaced.proj

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        scores = self.mask if self.scores is None else self.scores + self.mask
        values = self.value(x).unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        mixed = scores.softmax(dim=-1) @ values
        out: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return out


class StaticKeyAttention(Windowed):
    """Attends by the queries of the image to learned keys of positions, which no image changes."""

    def __init__(self, replaced: Any, grid: tuple[int, int], window: int, prefix: int) -> None:
        super().__init__(grid, window, prefix)
        tokens, channels = prefix + grid[0] * grid[1], replaced.proj.in_features
        self.num_heads, self.scale = replaced.num_heads, replaced.scale
        self.qv = nn.Linear(channels, 2 * channels, bias=replaced.qkv.bias is not None)
        _draw_linear(self.qv)
        self.keys = nn.Parameter(torch.empty(self.num_heads, tokens, channels // self.num_heads))
        # As long as the keys of an attention are at first: its layer takes normalized tokens.
        nn.init.trunc_normal_(self.keys, std=0.02 * channels**0.5)
        self.proj = replaced.proj

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        query, value = self.qv(x).unflatten(2, (2, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (query * self.scale) @ self.keys.transpose(1, 2) + self.mask
        attended = scores.softmax(dim=3) @ value
        out: Tensor = self.proj(attended.transpose(1, 2).flatten(2))
        return out


class DepthwiseMixing(nn.Module):
    """Mixes the values of a window by a depthwise convolution; prefix tokens get their mean."""

    taps: Tensor

    def __init__(self, replaced: Any, grid: tuple[int, int], window: int, prefix: int) -> None:
        super().__init__()
        channels, self.grid, self.prefix = replaced.proj.in_features, grid, prefix
        before = (window - 1) // 2
        self.padding = (before, window - 1 - before) * 2
        self.value = nn.Linear(channels, channels, bias=replaced.qkv.bias is not None)
        _draw_linear(self.value)
        self.conv = nn.Conv2d(channels, channels, window, groups=channels, bias=False)
        # Begin with a mean, as learned weights of pairs of positions do.
        nn.init.constant_(self.conv.weight, 1 / min(window**2, grid[0] * grid[1]))
        self.register_buffer("taps", taps_of_pairs(*grid, window), persistent=False)
        self.proj = replaced.proj

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        values = self.value(x)
        mixed = (self._multiply if self.training else self._convolve)(values[:, self.prefix :])
        mean = values.mean(1, keepdim=True).expand(-1, self.prefix, -1)
        out: Tensor = self.proj(torch.cat([mean, mixed], dim=1))
        return out

    def _convolve(self, values: Tensor) -> Tensor:
        maps = values.transpose(1, 2).reshape(len(values), -1, *self.grid)
        mixed: Tensor = self.conv(nn.functional.pad(maps, self.padding))
        return mixed.flatten(2).transpose(1, 2)

    def _multiply(self, values: Tensor) -> Tensor:
        """Return the same sums by matrix products: on a CPU, a third of the time for a step."""
        taps = nn.functional.pad(self.conv.weight.flatten(1), (0, 1))
        weights = taps.index_select(1, self.taps.flatten()).view(-1, *self.taps.shape)
        return (weights @ values.permute(2, 1, 0)).permute(2, 1, 0)


def _draw_linear(layer: nn.Linear) -> None:
    nn.init.trunc_normal_(layer.weight, std=0.02)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


MIXERS: dict[str, Callable[..., nn.Module]] = {
    "attention": LocalAttention,
    "static_key": StaticKeyAttention,
    "fixed": partial(PositionMixing, learned=True),
    "uniform": partial(PositionMixing, learned=False),
    "depthwise": DepthwiseMixing,
}


def replace_attention(model: Any, window: int | None, mixing: str) -> None:
    """Replace the attention in a timm ViT's blocks by what `mixing` names in `MIXERS`."""
    grid, prefix = model.patch_embed.grid_size, model.num_prefix_tokens
    # By default, choose a window that covers the whole grid from any position.
    window = window or 2 * max(grid) - 1
    for block in model.blocks:
        block.attn = MIXERS[mixing](block.attn, grid, window, prefix)
