"""What takes the place of the self-attention of a ViT of timm.

Local attention, as in the paper's Fig. 7, lets a token see a window of tokens around it. It keeps
the parameters, their names and the switch between fused and plain attention: checkpoints of both
are interchangeable. Mixing by position has no queries and keys: the weights are the same for all
images. What such a network lacks beside one with attention is due to weights that the data give.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


def sees(rows: int, columns: int, window: int, prefix: int) -> Tensor:
    """Tell which tokens each query sees, (queries, keys), of a grid behind `prefix` other tokens.

    A window of an odd side has its query in the middle. One of an even side reaches one position
    farther down and to the right, as the kernel of a convolution with the padding `same` does. At
    the edges of the grid it is cut off. Tokens of no position see all, and are seen by all.
    """
    before = (window - 1) // 2
    row, column = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).T
    near = torch.ones(rows * columns, rows * columns, dtype=torch.bool)
    for place in (row, column):
        offset = place[None, :] - place[:, None]
        near &= (offset >= -before) & (offset < window - before)
    return nn.functional.pad(near, (prefix, 0, prefix, 0), value=True)


def mask_of(seen: Tensor) -> Tensor:
    """Return what is added to scores: nothing where a key is seen, and -inf elsewhere."""
    return torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, -torch.inf)


class LocalAttention(nn.Module):
    """The attention of a ViT of timm behind a mask, with the layers of the one that it replaces."""

    mask: Tensor

    def __init__(self, replaced: Any, grid: tuple[int, int], window: int, prefix: int) -> None:
        super().__init__()
        self.num_heads, self.scale = replaced.num_heads, replaced.scale
        self.fused_attn = replaced.fused_attn
        self.qkv, self.proj = replaced.qkv, replaced.proj
        self._window = (*grid, window, prefix)
        self.init_non_persistent_buffers()

    def init_non_persistent_buffers(self) -> None:
        """Compute the buffer that no checkpoint holds; the name of the method is timm's."""
        seen = sees(*self._window).to(self.qkv.weight.device)
        self.register_buffer("mask", mask_of(seen), persistent=False)

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        """Return the tokens after attention; what timm's blocks give besides is a mask of none."""
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


class PositionMixing(nn.Module):
    """A mean of the values in a window, with learned weights of each pair of places or without.

    Weights of a head are a softmax over what a query sees. They begin as those of a mean.
    """

    mask: Tensor

    def __init__(
        self, replaced: Any, grid: tuple[int, int], window: int, prefix: int, learned: bool
    ) -> None:
        super().__init__()
        tokens, channels = prefix + grid[0] * grid[1], replaced.proj.in_features
        self.num_heads = replaced.num_heads
        self.value = nn.Linear(channels, channels, bias=replaced.qkv.bias is not None)
        nn.init.trunc_normal_(self.value.weight, std=0.02)
        if self.value.bias is not None:
            nn.init.zeros_(self.value.bias)
        shape = (self.num_heads, tokens, tokens)
        self.scores = nn.Parameter(torch.zeros(shape)) if learned else None
        self.proj = replaced.proj
        self._window = (*grid, window, prefix)
        self.init_non_persistent_buffers()

    def init_non_persistent_buffers(self) -> None:
        """Compute the buffer that no checkpoint holds; the name of the method is timm's."""
        seen = sees(*self._window).to(self.proj.weight.device)
        self.register_buffer("mask", mask_of(seen), persistent=False)

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        """Return the mixed tokens; what timm's blocks give besides is a mask of none."""
        scores = self.mask if self.scores is None else self.scores + self.mask
        values = self.value(x).unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        mixed = scores.softmax(dim=-1) @ values
        out: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return out


def replace_attention(model: Any, window: int | None, mixing: str) -> None:
    """Give the blocks of a ViT of timm attention to a window, or what mixes tokens in its place."""
    grid, prefix = model.patch_embed.grid_size, model.num_prefix_tokens
    # A window of all, from wherever it is seen.
    window = window or 2 * max(grid)
    for block in model.blocks:
        if mixing == "attention":
            block.attn = LocalAttention(block.attn, grid, window, prefix)
        else:
            block.attn = PositionMixing(block.attn, grid, window, prefix, mixing == "fixed")
