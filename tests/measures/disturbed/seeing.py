"""What networks see of images that are disturbed, and studies that disturb them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.helpers.studies import mini, mini_with
from vitscope.image_size import ImageSize
from vitscope.measures.disturbed.classify import Disturb, shares_found

Array = np.ndarray


class Recorder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Array] = []

    def forward(self, images: Tensor) -> Tensor:
        self.seen.append(images.numpy().copy())
        return torch.zeros(len(images), 2)


def batches(images: Array, size: int = 64) -> Iterator[Tensor]:
    return iter(torch.tensor(images, dtype=torch.float32).split(size))


def seen_of(
    images: Array, rows: Sequence[int], size: int, disturb: Disturb, disturbed: int
) -> list[Array]:
    """Return the images that a network is given in batches of `size`: clean, then disturbed."""
    model = Recorder()
    shares_found(model, batches(images, size), rows, np.zeros(len(rows), int), disturb)
    assert len(model.seen) % (1 + disturbed) == 0
    return [np.concatenate(model.seen[first :: 1 + disturbed]) for first in range(1 + disturbed)]


def study_of(folder: Path, kind: str, size: ImageSize, **analysis: dict[str, Any]) -> Path:
    """Write a study with images of `size`, and with a figure of `kind`."""
    data = {name: entry | {"image_size": size} for name, entry in mini()["data"].items()}
    figures = {"one": {"kind": kind, "models": ["resnet"]}}
    return mini_with(folder, data=data, figures=figures, analysis=analysis, buildups=None)
