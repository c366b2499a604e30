"""A small VMamba: stages of blocks that scan their map in four directions (SS2D)."""

import torch
import torch.nn.functional as F
from reference import selective_scan_ref
from torch import Tensor, nn


def selective_scan_fn(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = True,
    oflex: bool = True,
) -> Tensor:
    """Scan with the interface of VMamba, which has no z and other defaults."""
    return selective_scan_ref(u, delta, A, B, C, D, None, delta_bias, delta_softplus)


def scan_by_stack(x: Tensor) -> Tensor:
    """Return the four sequences of a map (images, channels, H, W): by rows and columns, and back."""
    two = torch.stack([x.flatten(2), x.transpose(2, 3).flatten(2)], 1)
    return torch.cat([two, two.flip(-1)], 1)


def scan_by_writing(x: Tensor) -> Tensor:
    """Return the same, written into a new tensor, as the authors' code does."""
    images, channels, height, width = x.shape
    found = x.new_empty((images, 4, channels, height * width))
    found[:, 0] = x.flatten(2)
    found[:, 1] = x.transpose(2, 3).flatten(2)
    found[:, 2:4] = found[:, 0:2].flip(-1)
    return found


def merge_scans(y: Tensor, height: int, width: int) -> Tensor:
    """Add four sequences (images, 4, channels, length) at the places of the map."""
    y = y[:, :2] + y[:, 2:].flip(-1)
    columns = y[:, 1].unflatten(-1, (width, height)).transpose(2, 3).flatten(2)
    return y[:, 0] + columns


class SS2D(nn.Module):
    def __init__(self, width: int, state: int, rank: int = 2) -> None:
        super().__init__()
        channels = 2 * width
        self.state, self.rank, self.cross_scan = state, rank, scan_by_stack
        self.in_proj = nn.Linear(width, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.x_proj = nn.Parameter(torch.randn(4, rank + 2 * state, channels) / channels**0.5)
        self.dt_proj = nn.Parameter(torch.randn(4, channels, rank) / rank**0.5)
        self.dt_bias = nn.Parameter(torch.full((4 * channels,), -2.0))
        self.A_log = nn.Parameter(torch.arange(1.0, state + 1).log().repeat(4 * channels, 1))
        self.D = nn.Parameter(torch.ones(4 * channels))
        self.out_norm, self.out_proj = nn.LayerNorm(channels), nn.Linear(channels, width)

    def forward(self, x: Tensor) -> Tensor:
        x = F.silu(self.conv(self.in_proj(x).permute(0, 3, 1, 2)))
        height, width = x.shape[2:]
        u = self.cross_scan(x)
        parts = torch.einsum("bkdl,kcd->bkcl", u, self.x_proj)
        delta, B, C = parts.split([self.rank, self.state, self.state], 2)
        delta = torch.einsum("bkrl,kdr->bkdl", delta, self.dt_proj).flatten(1, 2)
        y = selective_scan_fn(u.flatten(1, 2), delta, -self.A_log.exp(), B, C, self.D, self.dt_bias)
        y = merge_scans(y.unflatten(1, (4, -1)), height, width)
        y = self.out_norm(y.transpose(1, 2)).unflatten(1, (height, width))
        return self.out_proj(y)


class Block(nn.Module):
    def __init__(self, width: int, state: int) -> None:
        super().__init__()
        self.norm, self.op = nn.LayerNorm(width), SS2D(width, state)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.op(self.norm(x))
        return x + self.mlp(self.norm2(x))


class Downsample(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, 2 * width, 3, 2, 1), nn.LayerNorm(2 * width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))


class VMamba(nn.Module):
    def __init__(
        self, patch: int = 4, width: int = 8, depths: tuple[int, ...] = (2, 2), state: int = 2
    ) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, patch, patch)
        stages: list[nn.Module] = []
        for number, depth in enumerate(depths):
            here = width << number
            stages += [Downsample(here // 2)] * (number > 0)
            stages += [Block(here, state) for _ in range(depth)]
        self.layers = nn.Sequential(*stages)
        self.norm, self.head = nn.LayerNorm(here), nn.Linear(here, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.layers(self.patch_embed(images).permute(0, 2, 3, 1))
        return self.head(self.norm(x).mean((1, 2)))
