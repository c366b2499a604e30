"""Self-attention in which a token sees a window of tokens around it, as in the paper's Fig. 7.

It takes the place of the attention of a ViT of timm, and keeps its parameters, their names and its
switch between fused and plain attention: checkpoints of both are interchangeable.
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
        mask = torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, -torch.inf)
        self.register_buffer("mask", mask, persistent=False)

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


def attend_locally(model: Any, window: int) -> None:
    """Give the blocks of a ViT of timm attention that sees windows of this side."""
    grid, prefix = model.patch_embed.grid_size, model.num_prefix_tokens
    for block in model.blocks:
        block.attn = LocalAttention(block.attn, grid, window, prefix)
