"""The batches of a training: each is drawn by its own seed, here or in other processes."""

import os
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from vitscope.data.split import Split, normalize
from vitscope.errors import VitscopeError
from vitscope.training.augmentation import Images, augmentation, erasing, mixing
from vitscope.training.recipe import Recipe, training_rows
from vitscope.training.seeding import seeded

Batch = tuple[Tensor, Tensor]
# The number of an epoch and of a step in it, both from 0.
Step = tuple[int, int]


class Batches(Dataset[Batch | VitscopeError]):
    """Normalized images and their soft targets, by epoch and step.

    A batch depends on the seed, its epoch and its step, and on nothing that was drawn before. What
    fills no batch at the end of an epoch is left out.
    """

    def __init__(
        self, split: Split, recipe: Recipe, seed: int, mean: list[float], std: list[float]
    ) -> None:
        self._split, self._rows = split, training_rows(split, recipe)
        self._batch_size, self._seed = int(recipe["batch_size"]), seed
        self._mean, self._std = mean, std
        self._augment = augmentation(recipe, mean, split.shape[1:])
        self._erase, self._crops = erasing(recipe), recipe["crop"] is not None
        self._mix = mixing(recipe, len(split.classes))
        self._order = lru_cache(maxsize=1)(self._drawn_order)

    @property
    def steps(self) -> int:
        """How many batches an epoch has."""
        return len(self._rows) // self._batch_size

    def draw(self, epoch: int, step: int) -> Batch:
        """Return a batch."""
        first = step * self._batch_size
        chosen = self._order(epoch)[first : first + self._batch_size]
        with seeded(self._seed, epoch, step):
            augmented = self._augment(self._open(chosen)).transpose(0, 3, 1, 2)
            images = self._erase(normalize(augmented, self._mean, self._std))
            return self._mix(images, torch.tensor(self._split.labels[chosen]))

    def _open(self, rows: npt.NDArray[np.int64]) -> Images:
        """Return images, (H, W, C), whole where parts are cut out of them."""
        if self._crops:
            return self._split.pictures(rows)
        return self._split.images(rows).transpose(0, 2, 3, 1)

    def _drawn_order(self, epoch: int) -> npt.NDArray[np.int64]:
        with seeded(self._seed, epoch):
            order: npt.NDArray[np.int64] = torch.randperm(len(self._rows)).numpy()
        return self._rows[order]

    def __getitem__(self, step: Step) -> Batch | VitscopeError:
        """Return a batch, or the error: one that another process raises loses its form."""
        try:
            return self.draw(*step)
        except VitscopeError as error:
            return error

    def ahead(self, first: int, last: int, workers: int) -> Iterator[Batch]:
        """Yield the batches of epochs `first` to `last`, without it, drawn by other processes.

        These are ahead of who takes the batches. Without workers each is drawn when it is taken.
        """
        steps = [(epoch, step) for epoch in range(first, last) for step in range(self.steps)]
        loader = DataLoader(
            self,
            batch_size=None,
            sampler=steps,
            num_workers=workers,
            # Spawned ones would import the script of the job, which trains.
            multiprocessing_context="fork" if workers else None,
            # The loader draws a seed that is not used, and not from the generator of the network.
            generator=torch.Generator(),
        )
        for batch in loader:
            if isinstance(batch, VitscopeError):
                raise batch
            yield batch


def workers_for(device: torch.device) -> int:
    """Return how many processes keep up with a network; batches are the same from any number."""
    if not hasattr(os, "sched_getaffinity"):
        # Where processes are not forked safely.
        return 0
    on_cpu = device.type == "cpu"
    # Without a core of its own, another process would hold up the threads that train.
    spare = len(os.sched_getaffinity(0)) - (torch.get_num_threads() if on_cpu else 1)
    return max(0, min(spare, 1 if on_cpu else 8))
