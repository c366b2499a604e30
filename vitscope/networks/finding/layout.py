"""How a tensor lays out the feature maps of images."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Describes the order of images (n), channels (c), space (h, w) and tokens (l) in a tensor.

    For tokens, `grid` gives the rows and columns that their positions fill, and `count` the number
    of tokens in an image; the first `prefix` tokens have no position. If the tokens do not run row
    by row, `tokens` gives the index of the token at each position. If windows are counted as
    images, the dimension `n` holds both the images and their windows.
    """

    order: str
    prefix: int = 0
    grid: tuple[int, int] | None = None
    count: int = 0
    tokens: tuple[int, ...] | None = None

    def to_nchw(self, tensor: "Tensor") -> "Tensor":
        """Return the feature map as (N, C, H, W), without prefix tokens; as a view if possible."""
        if self.order == "nchw":
            return tensor
        if self.order == "nhwc":
            return tensor.permute(0, 3, 1, 2)
        if self.grid is None:
            raise ValueError("a layout of tokens needs the grid that they fill")
        moved = self._all_tokens(tensor)
        kept = moved[:, self.prefix :] if self.tokens is None else moved[:, list(self.tokens)]
        tokens = kept.transpose(1, 2)
        return tokens.view(*tokens.shape[:2], *self.grid)

    def first_prefix(self, tensor: "Tensor") -> "Tensor | None":
        """Return the first token without a position, as (N, C); None if every token has one."""
        first = 0 if self.prefix else None
        if self.tokens is not None:
            first = next((n for n in range(self.count) if n not in self.tokens), None)
        return None if first is None else self._all_tokens(tensor)[:, first]

    def _all_tokens(self, tensor: "Tensor") -> "Tensor":
        """Return the tokens of a tensor, as (N, tokens, C)."""
        channel, image = self.order.index("c"), self.order.index("n")
        inner = [d for d in range(tensor.ndim) if d not in (channel, image)]
        moved = tensor.permute(image, *inner, channel)
        if moved.ndim != 3 or (self.count and moved.shape[1] != self.count):
            moved = moved.reshape(-1, self.count, moved.shape[-1])
        return moved
