"""AlterNet: a pre-activation ResNet in which attention blocks take the place of some convolutions.

Stages end with the alternation that the paper proposes: a convolution block, an attention block.
"""

from collections import OrderedDict
from collections.abc import Mapping
from math import ceil
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from vitscope.image_size import height_and_width
from vitscope.networks.building.families._parts import (
    EXPANSION,
    drop_path,
    drop_rates,
    stem_pooling,
)
from vitscope.networks.building.family import WantedNetwork

ARCH = {
    "properties": {
        "depth": ("depth of a ResNet", "A network of the paper, by its depth."),
        "block": "usual",
        "blocks": "usual",
        "attention": {
            "description": (
                "MSA blocks of each stage: every second one, from its end. Beside a `depth`, in "
                "place of the published ones: [0, 1, 1, 1] has one at the end of each of the last "
                "three stages, [0, 1, 1, 2] are those of the paper's Fig. 11."
            ),
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 4,
            "maxItems": 4,
        },
        "heads": (
            "counts of four stages",
            "Heads of the MSAs of each stage; 3, 6, 12, 24 if left out.",
        ),
        "head_dim": ("count", "Channels of a head; 64 if left out."),
        "window": ("count", "Side of the windows of attention; 4 if left out, or 7 with a `stem`."),
        "mixing": {
            "description": (
                "What mixes the tokens of a window: `attention`, if left out; `fixed`, learned "
                "weights of their positions alone, the same for all images; `uniform`, their mean. "
                "So the last two tell what data-specific weights are good for."
            ),
            "enum": ["attention", "fixed", "uniform"],
        },
        "width": "usual",
        "stem": "usual",
        "drop_path_rate": "usual",
    },
    "oneOf": [{"required": ["depth"]}, {"required": ["block", "blocks", "attention"]}],
}
DEPTHS: dict[int, dict[str, Any]] = {
    18: {"block": "basic", "blocks": (2, 2, 2, 2), "attention": (0, 1, 1, 1)},
    34: {"block": "basic", "blocks": (3, 4, 6, 4), "attention": (0, 1, 3, 2)},
    50: {"block": "bottleneck", "blocks": (3, 4, 6, 4), "attention": (0, 1, 3, 2)},
    101: {"block": "bottleneck", "blocks": (3, 4, 23, 4), "attention": (0, 1, 3, 2)},
    152: {"block": "bottleneck", "blocks": (3, 8, 36, 4), "attention": (0, 1, 3, 2)},
}
DEFAULTS: dict[str, Any] = {
    "heads": (3, 6, 12, 24),
    "head_dim": 64,
    "window": 4,
    "mixing": "attention",
    "width": 64,
    "stem": False,
    "drop_path_rate": 0.0,
}
# After a stem, the maps of 224-pixel images have sides that are multiples of this number.
WINDOW_BEHIND_STEM = 7


def bn_relu_conv(in_channels: int, channels: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(in_channels, channels, kernel, stride, padding=kernel // 2, bias=False)
    return nn.Sequential(nn.BatchNorm2d(in_channels), nn.ReLU(), conv)


class BiasedAttention(nn.Module):
    """Applies multi-head self-attention over all positions of a map, with a bias for every pair."""

    def __init__(self, in_channels: int, channels: int, heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Conv2d(in_channels, heads * head_dim, 1, bias=False)
        self.to_kv = nn.Conv2d(in_channels, 2 * heads * head_dim, 1, bias=False)
        self.to_out = nn.Sequential(nn.Conv2d(heads * head_dim, channels, 1))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        maps = (self.to_q(x), *self.to_kv(x).chunk(2, dim=1))
        q, k, v = (rearrange(m, "n (h d) y x -> n h (y x) d", h=self.heads) for m in maps)
        weights = (q @ k.transpose(2, 3) * q.shape[3] ** -0.5 + bias).softmax(dim=3)
        out: Tensor = self.to_out(
            rearrange(weights @ v, "n h (y x) d -> n (h d) y x", y=x.shape[2])
        )
        return out


class BiasMixing(nn.Module):
    """Mixes positions with weights that come from the biases alone, without queries and keys."""

    def __init__(self, in_channels: int, channels: int, heads: int, head_dim: int) -> None:
        super().__init__()
        self.to_v = nn.Conv2d(in_channels, heads * head_dim, 1, bias=False)
        self.to_out = nn.Sequential(nn.Conv2d(heads * head_dim, channels, 1))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        mixed = self.to_v(x).flatten(2) @ bias.softmax(dim=1).T
        out: Tensor = self.to_out(mixed.unflatten(2, x.shape[2:]))
        return out


class WindowAttention(nn.Module):
    """Applies `Attention` or `PositionMixing` inside windows, with one bias for every offset."""

    rel_index: Tensor

    def __init__(
        self, in_channels: int, channels: int, heads: int, arch: Mapping[str, Any]
    ) -> None:
        super().__init__()
        window, mixing = arch["window"], arch["mixing"]
        kind = BiasedAttention if mixing == "attention" else BiasMixing
        self.attn = kind(in_channels, channels, heads, arch["head_dim"])
        self.window = window
        distances = 2 * window - 1
        embedding = torch.randn(distances, distances) * 0.02
        if mixing == "uniform":
            self.register_buffer("pos_embedding", torch.zeros_like(embedding))
        else:
            self.pos_embedding = nn.Parameter(embedding)
        side = torch.arange(window)
        positions = torch.cartesian_prod(side, side).T
        distances = positions[:, None, :] - positions[:, :, None]
        self.register_buffer("rel_index", distances + window - 1, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        window, rows = self.window, x.shape[2] // self.window
        cut = rearrange(x, "n c (r y) (s x) -> (n r s) c y x", y=window, x=window)
        out = self.attn(cut, self.pos_embedding[self.rel_index[0], self.rel_index[1]])
        whole: Tensor = rearrange(out, "(n r s) c y x -> n c (r y) (s x)", n=len(x), r=rows)
        return whole


class AlterNetBlock(nn.Module):
    """A pre-activation block; a projecting shortcut starts after the first activation."""

    def __init__(self, in_channels: int, channels: int, stride: int, dropped: float) -> None:
        super().__init__()
        projects = stride != 1 or in_channels != channels
        conv = nn.Conv2d(in_channels, channels, 1, stride, bias=False)
        self.shortcut = nn.Sequential(*[conv] if projects else [])
        self.sd = drop_path(dropped)

    def join(self, branch: Tensor, x: Tensor, activated: Tensor) -> Tensor:
        out: Tensor = self.sd(branch) + (self.shortcut(activated) if len(self.shortcut) else x)
        return out


class ConvBlock(AlterNetBlock):
    def __init__(
        self, in_channels: int, width: int, stride: int, kind: str, dropped: float
    ) -> None:
        channels = width * EXPANSION[kind]
        super().__init__(in_channels, channels, stride, dropped)
        self.bn = nn.BatchNorm2d(in_channels)
        self.relu = nn.ReLU()
        self.narrows = kind == "bottleneck"
        if self.narrows:
            self.conv1 = nn.Conv2d(in_channels, width, 1, bias=False)
            self.conv2 = bn_relu_conv(width, width, 3, stride)
            self.conv3 = bn_relu_conv(width, channels, 1)
        else:
            self.conv1 = nn.Conv2d(in_channels, width, 3, stride, padding=1, bias=False)
            self.conv2 = bn_relu_conv(width, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        activated = self.relu(self.bn(x))
        branch = self.conv2(self.conv1(activated))
        if self.narrows:
            branch = self.conv3(branch)
        return self.join(branch, x, activated)


class AttentionBlock(AlterNetBlock):
    def __init__(
        self, channels: int, width: int, heads: int, arch: Mapping[str, Any], dropped: float
    ) -> None:
        super().__init__(channels, channels, 1, dropped)
        self.norm1 = nn.BatchNorm2d(channels)
        self.relu = nn.GELU()
        self.conv = nn.Conv2d(channels, width, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.attn = WindowAttention(width, channels, heads, arch)

    def forward(self, x: Tensor) -> Tensor:
        activated = self.relu(self.norm1(x))
        return self.join(self.attn(self.norm2(self.conv(activated))), x, activated)


class AlterNetClassifier(nn.Module):
    """Normalization, activation, global average pooling and, given classes, a linear layer."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.dense = nn.Linear(channels, num_classes) if num_classes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dense(self.relu(self.bn(x)).mean((2, 3)))
        return out


class AlterNet(nn.Sequential):
    """A network with the module names of the authors' checkpoints."""

    def __init__(self, arch: Mapping[str, Any], num_classes: int, in_channels: int) -> None:
        super().__init__()
        width, channels = arch["width"], arch["width"]
        kernel, stride = (7, 2) if arch["stem"] else (3, 1)
        conv = nn.Conv2d(in_channels, width, kernel, stride, kernel // 2, bias=False)
        stem = nn.Sequential(conv, *[stem_pooling()] if arch["stem"] else [])
        self.layer0 = nn.Sequential(OrderedDict(layer0=stem))
        rates = drop_rates(arch["drop_path_rate"], arch["blocks"])
        for stage in range(len(arch["blocks"])):
            layers: list[nn.Module] = []
            for index, attends in enumerate(attending_blocks(arch, stage)):
                if attends:
                    narrow = channels // EXPANSION[arch["block"]]
                    heads = arch["heads"][stage]
                    layers.append(AttentionBlock(channels, narrow, heads, arch, next(rates)))
                else:
                    stride = 2 if stage > 0 and index == 0 else 1
                    inner, kind = width * 2**stage, arch["block"]
                    layers.append(ConvBlock(channels, inner, stride, kind, next(rates)))
                    channels = inner * EXPANSION[kind]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.classifier = nn.Sequential(AlterNetClassifier(channels, num_classes))


def attending_blocks(arch: Mapping[str, Any], stage: int) -> list[bool]:
    attending = arch["attention"][stage]
    plain = arch["blocks"][stage] - 2 * attending
    return [False] * plain + [False, True] * attending


def network(wanted: WantedNetwork) -> nn.Module:
    arch = wanted.arch
    full = {**DEFAULTS, **DEPTHS.get(arch.get("depth", 0), {}), **arch}
    if full["stem"] and "window" not in arch:
        full["window"] = WINDOW_BEHIND_STEM
    behind = 4 if full["stem"] else 1
    for stage, attending in enumerate(full["attention"]):
        if 2 * attending > full["blocks"][stage]:
            raise ValueError(f"at most half of the blocks of stage {stage + 1} can attend")
        sides = (ceil(side / behind / 2**stage) for side in height_and_width(wanted.image_size))
        if attending and any(side % full["window"] for side in sides):
            raise ValueError(f"the maps of stage {stage + 1} do not divide into windows")
    return AlterNet(full, wanted.classes, wanted.channels)
