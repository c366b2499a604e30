"""Patches of images: dropped, or in another order.

What is drawn is drawn by numpy, so that every model gets the same on any device.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vitscope.files.arrays import Array


def orders(seed: int, rows: Sequence[int], draw: int, patches: int) -> Array:
    """Return the patches of each image in random order, (N, patches).

    The order of an image depends on the seed, the draw, the number of patches and on its row in the
    split, and on nothing else.
    """
    words = [
        np.random.Philox(
            key=np.array([seed, row], np.uint64), counter=np.array([0, 0, patches, draw], np.uint64)
        ).random_raw(patches)
        for row in rows
    ]
    return np.argsort(np.stack(words), axis=1, kind="stable")


def drop(images: Tensor, order: Array, dropped: int, grid: int, black: Tensor) -> Tensor:
    """Return images whose first patches in an order are black, as many as are dropped."""
    kept = np.ones(order.shape, bool)
    np.put_along_axis(kept, order[:, :dropped], False, axis=1)
    mask = torch.from_numpy(kept).to(images.device).view(-1, 1, grid, 1, grid, 1)
    cut = _cut(images, grid)
    return torch.where(mask, cut, black.to(images).view(-1, 1, 1, 1, 1)).view(images.shape)


def shuffle(images: Tensor, order: Array, grid: int) -> Tensor:
    """Return images whose patches stand in an order, row by row."""
    cut = _cut(images, grid).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    first = torch.arange(len(images), device=images.device)[:, None]
    moved = cut[first, torch.from_numpy(order).to(images.device)]
    placed = moved.reshape(len(images), grid, grid, *moved.shape[2:]).permute(0, 3, 1, 4, 2, 5)
    return placed.reshape(images.shape)


def _cut(images: Tensor, grid: int) -> Tensor:
    """Return images as (N, C, grid, height of a patch, grid, width of a patch)."""
    count, channels, height, width = images.shape
    return images.reshape(count, channels, grid, height // grid, grid, width // grid)
