"""Small networks of tokens: a stem, blocks that add a branch, and the mean over tokens."""

import torch
from torch import Tensor, nn

# Channels of the stream.
C = 8


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(C, 2 * C), nn.GELU(), nn.Linear(2 * C, C))


class Tokens(nn.Conv2d):
    """Tokens of patches of 4 pixels."""

    def __init__(self) -> None:
        super().__init__(3, C, 4, 4)

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images).flatten(2).transpose(1, 2)


class Residual(nn.Module):
    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.add, self.norm, self.branch = torch.add, nn.LayerNorm(C), branch

    def forward(self, x: Tensor) -> Tensor:
        return self.add(x, self.branch(self.norm(x)))


class Net(nn.Module):
    def __init__(self, stem: nn.Module, *blocks: nn.Module) -> None:
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.Sequential(*blocks), nn.Linear(C, 5)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(images)).mean(1))
