from typing import Any

import torch
from torch import Tensor, nn

import vitscope
from vitscope.scopes.scope import Scope

CLASSES, SIZE, CHANNELS = 5, 16, 8


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm_of_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        queries = self.norm(tokens)
        tokens = tokens + self.attention(queries, queries, queries)[0]
        return tokens + self.mlp(self.norm_of_mlp(tokens))


class Transformer(nn.Module):
    """A small ViT that returns what networks of Hugging Face do."""

    def __init__(self, depth: int = 2, width: int = CHANNELS) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        return {"logits": self.head(tokens.mean(1))}


class Convolutions(nn.Module):
    """A small residual network with batch normalization, which training changes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.branches = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS), nn.ReLU()
            )
            for _ in range(2)
        )
        self.head = nn.Linear(CHANNELS, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.stem(images)
        for branch in self.branches:
            maps = maps + branch(maps)
        return self.head(maps.mean((2, 3)))


def network(kind: type[nn.Module] = Transformer, **keywords: Any) -> nn.Module:
    """Return a network with weights that are the same every time."""
    torch.manual_seed(0)
    return kind(**keywords)


def pixels(count: int = 12) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    shape = (count, 3, SIZE, SIZE)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def labels(count: int = 12) -> Tensor:
    return torch.arange(count) % CLASSES


def looked_at(model: nn.Module | None = None, images: Any = None, **more: Any) -> Scope:
    """Look at a network, by default the small ViT, with labelled images."""
    images = pixels() if images is None else images
    model = network() if model is None else model
    return vitscope.look(model, images, labels(len(images)), 0.5, 0.25, **more)
