"""Augmented training images that were drawn once: what the loss is measured on away from training.

A model is trained on images that are shifted, flipped, mixed and so on, with smoothed targets, and
its loss on anything else is another function. All measurements share one draw: what differs between
two points of a landscape is then the weights alone.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile


class Augmented:
    """Images and targets that were drawn, mapped into memory."""

    def __init__(self, path: Path | str) -> None:
        self._file = TensorFile(path)
        if set(self._file.names) != {"images", "targets"}:
            raise VitscopeError(f"{path} holds no augmented images: delete it and run again.")

    def __len__(self) -> int:
        return self._file.shape("images")[0]

    @property
    def metadata(self) -> dict[str, str]:
        """What is known of where the images come from."""
        return self._file.metadata

    def rows(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Return the images and targets from `first` to before `last`."""
        images, targets = self._file.array("images"), self._file.array("targets")
        return torch.tensor(images[first:last]), torch.tensor(targets[first:last])

    def batches(self, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all images with their targets in batches."""
        for first in range(0, len(self), batch_size):
            yield self.rows(first, first + batch_size)
