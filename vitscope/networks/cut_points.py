"""Where the residual stream of a network is read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

Kind = Literal["stem", "conv", "msa", "mlp", "pool", "head"]


@dataclass(frozen=True)
class Layout:
    """How a tensor lays out its channels, its space and its prefix tokens."""

    order: Literal["nchw", "nlc", "nhwc"]
    prefix: int = 0
    grid: tuple[int, int] | None = None

    def to_nchw(self, tensor: "Tensor") -> "Tensor":
        """Return the feature map as (N, C, H, W), without prefix tokens and without a copy."""
        if self.order == "nchw":
            return tensor
        if self.order == "nhwc":
            return tensor.permute(0, 3, 1, 2)
        if self.grid is None:
            raise ValueError("a layout of tokens needs the grid that they fill")
        tokens = tensor[:, self.prefix :].transpose(1, 2)
        return tokens.reshape(*tokens.shape[:2], *self.grid)


@dataclass(frozen=True)
class CutPoint:
    """A place where the residual stream of a model is read.

    `module` is the dotted name of the module whose input or output (`at`) is the stream there;
    `branch` that of the module whose output is the residual branch that just joined it.
    """

    name: str
    kind: Kind
    stage: int
    module: str
    at: Literal["input", "output"]
    layout: Layout
    branch: str | None = None
