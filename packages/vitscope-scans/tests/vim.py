"""A small Vim: blocks that scan forward and backward, with the class token in the middle."""

import torch
import torch.nn.functional as F
from reference import selective_scan_ref as selective_scan_fn
from torch import Tensor, nn


class Scan(nn.Module):
    """One direction: a causal convolution, and the scan of what it returns."""

    def __init__(self, channels: int, state: int, rank: int) -> None:
        super().__init__()
        self.state, self.rank = state, rank
        self.conv = nn.Conv1d(channels, channels, 4, padding=3, groups=channels)
        self.x_proj = nn.Linear(channels, rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(rank, channels)
        self.A_log = nn.Parameter(torch.arange(1.0, state + 1).log().repeat(channels, 1))
        self.D = nn.Parameter(torch.ones(channels))
        nn.init.constant_(self.dt_proj.bias, -2)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        x = F.silu(self.conv(x)[..., : x.shape[-1]])
        parts = self.x_proj(x.transpose(1, 2)).split([self.rank, self.state, self.state], -1)
        delta, B, C = (each.transpose(1, 2) for each in parts)
        delta = self.dt_proj.weight @ delta
        how = {"z": z, "delta_bias": self.dt_proj.bias, "delta_softplus": True}
        return selective_scan_fn(x, delta, -self.A_log.exp(), B, C, self.D, **how)


class Mixer(nn.Module):
    def __init__(self, width: int, state: int) -> None:
        super().__init__()
        self.in_proj = nn.Linear(width, 4 * width, bias=False)
        self.forward_scan, self.backward_scan = (Scan(2 * width, state, 4) for _ in range(2))
        self.out_proj = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x, z = self.in_proj(x).transpose(1, 2).chunk(2, 1)
        y = self.forward_scan(x, z) + self.backward_scan(x.flip(-1), z.flip(-1)).flip(-1)
        return self.out_proj(y.transpose(1, 2))


class Block(nn.Module):
    def __init__(self, width: int, state: int) -> None:
        super().__init__()
        self.norm, self.mixer = nn.LayerNorm(width), Mixer(width, state)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mixer(self.norm(x))


class Vim(nn.Module):
    def __init__(
        self, side: int = 32, patch: int = 4, width: int = 16, depth: int = 4, state: int = 4
    ) -> None:
        super().__init__()
        self.middle = (side // patch) ** 2 // 2
        self.patch_embed = nn.Conv2d(3, width, patch, patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(0.1 * torch.randn(1, 2 * self.middle + 1, width))
        self.layers = nn.ModuleList(Block(width, state) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch_embed(images).flatten(2).transpose(1, 2)
        token = self.cls_token.expand(len(x), -1, -1)
        x = torch.cat([x[:, : self.middle], token, x[:, self.middle :]], 1) + self.pos_embed
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, self.middle])
