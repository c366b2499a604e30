"""Draw the batches of a training run, each by a seed of its own, and augmented images for measures.

Measures of the loss use augmented images that are drawn once, so that only the weights differ
between two points of a landscape.
"""

import os
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

from vitscope.data.split import Split, known_labels, select
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.settings.draws import images_apart, images_of_a_draw
from vitscope.training.augmentation import CPU, Images, augmentation, finishing_augmentation
from vitscope.training.recipe import Recipe, training_rows

Batch = tuple[Tensor, Tensor]
# Indices of an epoch and of a step in this epoch, from 0.
Step = tuple[int, int]
# The last part of the key that seeds the second half of augmentation on a device.
SECOND_HALF = 1
# The maximum number of steps queued on a device, including the step of the newest batch.
UNDER_WAY = 2
CLEAN_BATCH = 256
# The metadata key for the number of images that share a draw of augmentation.
DRAWN_TOGETHER = "drawn_together"


@contextmanager
def seeded(*key: int) -> Iterator[None]:
    """Seed all generators by a key, such as (seed, epoch, step), and restore them afterwards."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    # A worker process is forked, and must not touch a GPU.
    with torch.random.fork_rng(devices=[] if get_worker_info() else None):
        # Include the key's length, because NumPy pads sequences with zeros.
        mixed = np.random.SeedSequence((len(key), *key)).generate_state(1)[0]
        seed = key[0] if len(key) == 1 else int(mixed)
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (timm draws from the global generators)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


class Batches:
    """Draws batches of normalized images and their soft targets, by epoch and step.

    A batch depends only on the seed, its epoch and its step. The last images of an epoch are left
    out if they do not fill a batch.
    """

    def __init__(
        self, split: Split, recipe: Recipe, seed: int, mean: list[float], std: list[float]
    ) -> None:
        self._split, self._rows = split, training_rows(split, recipe)
        self._batch_size, self._seed = int(recipe["batch_size"]), seed
        self.steps = len(self._rows) // self._batch_size
        self._augment = augmentation(recipe, mean, split.shape[1:])
        self._crops = recipe["crop"] is not None
        self._finishing = partial(finishing_augmentation, recipe, len(split.classes), mean, std)
        self._finish = self._finishing(CPU)
        self._order = lru_cache(maxsize=1)(self._draw_order)

    def draw(self, epoch: int, step: int, finish: bool = True) -> Batch:
        """Return a batch; without `finish`, as the first half of the augmentation leaves it."""
        first = step * self._batch_size
        with seeded(self._seed, epoch, step):
            chosen = self._order(epoch)[first : first + self._batch_size]
            # Crop from the original images, before they are resized.
            images: Images = (
                self._split.pictures(chosen)
                if self._crops
                else self._split.images(chosen).transpose(0, 2, 3, 1)
            )
            begun = torch.tensor(self._augment(images)), torch.tensor(self._split.labels[chosen])
            return self._finish(*begun) if finish else begun

    def _draw_order(self, epoch: int) -> npt.NDArray[np.int64]:
        with seeded(self._seed, epoch):
            order: npt.NDArray[np.int64] = torch.randperm(len(self._rows)).numpy()
        return self._rows[order]

    def ahead(
        self, first: int, last: int, workers: int, device: torch.device | None = None
    ) -> Iterator[Batch]:
        """Yield the batches of epochs from `first` to before `last`, drawn by worker processes.

        A `device`, if given, does the second half of augmentation, with other random numbers than
        without it.
        """
        steps = [(epoch, step) for epoch in range(first, last) for step in range(self.steps)]
        if device is None:
            return _load_batches(workers, self.draw, steps)
        begin = partial(self.draw, finish=False)
        begun = _load_batches(workers, begin, steps, pinned=device.type == "cuda")
        return self._finished_on(device, steps, begun)

    def _finished_on(
        self, device: torch.device, steps: Sequence[Step], begun: Iterator[Batch]
    ) -> Iterator[Batch]:
        """Yield batches; the device copies and finishes each of them during the previous step."""
        finish, streams = self._finishing(device), torch.get_device_module(device)
        aside, under_way = streams.Stream(), deque[tuple[Any, Batch]]()
        for step, (pixels, labels) in zip(steps, begun, strict=True):
            with streams.stream(aside), seeded(self._seed, *step, SECOND_HALF):
                batch = finish(
                    pixels.to(device, non_blocking=True), labels.to(device, non_blocking=True)
                )
            streams.current_stream().wait_stream(aside)
            yield batch
            # Keep a batch until its step is done: its memory belongs to the side stream, which
            # could overwrite it. Waiting also limits the number of batches that are kept.
            done = streams.Event()
            done.record(streams.current_stream())
            under_way.append((done, batch))
            if len(under_way) == UNDER_WAY:
                done, batch = under_way.popleft()
                done.synchronize()


class _Steps(Dataset[Batch | VitscopeError]):
    """Returns the batch of a step, or its error: raising the error in a worker would change it."""

    def __init__(self, draw: Callable[[int, int], Batch]) -> None:
        self._draw = draw

    def __getitem__(self, step: Step) -> Batch | VitscopeError:
        try:
            return self._draw(*step)
        except VitscopeError as error:
            return error


def _load_batches(
    workers: int, draw: Callable[[int, int], Batch], steps: Sequence[Step], pinned: bool = False
) -> Iterator[Batch]:
    loader = DataLoader(
        _Steps(draw),
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        # A GPU can copy while it computes only from pinned memory.
        pin_memory=pinned,
        # Fork, because spawned processes would import the job's script, and that starts training.
        multiprocessing_context="fork" if workers else None,
        # The loader draws an unused seed: do not take it from the network's generator.
        generator=torch.Generator(),
    )
    for batch in loader:
        if isinstance(batch, VitscopeError):
            raise batch
        yield batch


def workers_for_batches(device: torch.device) -> int:
    """Return the number of worker processes for a device; it has no effect on the batches."""
    if not hasattr(os, "sched_getaffinity"):
        # Forking is not safe on this system.
        return 0
    cores, threads = len(os.sched_getaffinity(0)), torch.get_num_threads()
    if device.type == "cpu":
        # A worker without a core of its own would slow down the threads that train.
        return int(cores > threads)
    # A job with several threads may use only that many cores, since other jobs use the rest.
    share = min(cores, threads) if threads > 1 else cores
    return min(share - 1, 8)


class AugmentedImages:
    """Reads a file of augmented images and their targets, mapped into memory."""

    def __init__(self, path: Path | str) -> None:
        self._file = TensorFile(path)
        self.metadata = self._file.metadata
        if set(self._file.names) != {"images", "targets"}:
            raise VitscopeError(f"{path} holds no augmented images: delete it and run again.")

    def __len__(self) -> int:
        return self._file.shape("images")[0]

    def rows(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Return the images and targets from `first` to before `last`."""
        images, targets = self._file.array("images"), self._file.array("targets")
        return torch.tensor(images[first:last]), torch.tensor(targets[first:last])

    def batch(self, number: int, size: int, largest: int) -> tuple[Tensor, Tensor]:
        """Return the first `size` images of batch `number`, of batches with `largest` images.

        Each batch has a draw of its own, as in training: a batch of a recipe that mixes images
        begins a training batch, whose images are mixed among themselves. Batches of other sizes
        with the same `largest` are nested.
        """
        first = number * images_apart(largest, int(self.metadata.get(DRAWN_TOGETHER, 1)))
        return self.rows(first, first + size)

    def batches(
        self, batch_size: int, images: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the first `images` images, or all, in batches that follow each other."""
        last = images or len(self)
        for first in range(0, last, batch_size):
            yield self.rows(first, min(first + batch_size, last))


def write_augmented_batches(
    split: Split,
    recipe: Recipe,
    images: int,
    seed: int,
    path: Path | str,
    *,
    mean: list[float],
    std: list[float],
    clean: bool = False,
) -> None:
    """Write augmented training images and their targets; if `clean`, only normalize the images."""
    rows = training_rows(split, recipe)
    known_labels(split, rows.tolist())
    if not clean and (size := recipe["batch_size"]) > len(rows):
        raise VitscopeError(
            f"training.batch_size is {size} and there are {len(rows)} images to draw from: lower "
            f"it there, or in loss.augment if the study has it, or give the split more images."
        )
    shape = (images, *split.shape)
    tensors = {"images": ("F32", shape), "targets": ("F32", (images, len(split.classes)))}
    metadata = {"data_sha256": split.digest, "seed": str(seed), "clean": str(clean)}
    metadata[DRAWN_TOGETHER] = "1" if clean else str(images_of_a_draw(recipe))
    with TensorWriter(path, tensors, metadata) as writer:
        if clean:
            drawn = draw_clean_batches(split, rows, images, seed, mean, std)
        else:
            # Draw as in training, epoch after epoch, without end.
            batches = Batches(split, recipe, seed, mean, std)
            drawn = (batches.draw(*divmod(number, batches.steps)) for number in count())
        first = 0
        while first < images:
            pixels, targets = next(drawn)
            taken = min(len(pixels), images - first)
            writer.write("images", first, pixels[:taken].numpy())
            writer.write("targets", first, targets[:taken].numpy())
            first += taken


def draw_clean_batches(
    split: Split,
    rows: npt.NDArray[np.int64],
    images: int,
    seed: int,
    mean: list[float],
    std: list[float],
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield `images` random images of `rows` in batches, only normalized, with one-hot targets."""
    if images > len(rows):
        raise VitscopeError(
            f"The study asks for the loss of {images} images as they are, and there are "
            f"{len(rows)}: lower analysis.augmented.images, and analysis.fit.images for the fit."
        )
    chosen = rows[select(len(rows), images, seed)]
    for first in range(0, images, CLEAN_BATCH):
        group = chosen[first : first + CLEAN_BATCH]
        labels = torch.tensor(split.labels[group])
        hot = torch.nn.functional.one_hot(labels, len(split.classes)).float()
        yield split.normalize(group.tolist(), mean, std), hot
