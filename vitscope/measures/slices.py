"""Measure the maps of a shard slice by slice, in several threads."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.tensors import DTYPES, TensorFile, as_float, checksum

# From maps (N, C, H, W) to the values of each image (N, K).
Measure = Callable[[Array], Array]

# A slice is small enough for the L2 cache of a core.
SLICE_BYTES = 1 << 20


@dataclass(frozen=True)
class _Slice:
    """The maps of some images at one cut point."""

    name: str
    first: int
    images: int


def _slices(latents: TensorFile, name: str) -> Iterator[_Slice]:
    maps = latents.mapped(name)
    step = max(1, SLICE_BYTES // maps[0].nbytes)
    for first in range(0, len(maps), step):
        yield _Slice(name, first, min(step, len(maps) - first))


class _Reader:
    """Read slices; each thread has a buffer of its own, which every read overwrites."""

    def __init__(self, latents: TensorFile, names: Mapping[str, Any]) -> None:
        self._latents = latents
        self._shapes = {name: latents.shape(name)[1:] for name in names}
        self._local = threading.local()

    def read(self, wanted: _Slice) -> tuple[Array, int]:
        """Return the maps of a slice, valid until the thread's next read, and their checksum."""
        shape = (wanted.images, *self._shapes[wanted.name])
        dtype = self._latents.dtype(wanted.name)
        size = int(np.prod(shape)) * DTYPES[dtype].itemsize
        buffer: Array = getattr(self._local, "buffer", np.empty(0, np.uint8))
        if len(buffer) < size:
            buffer = self._local.buffer = np.empty(size, np.uint8)
        maps = buffer[:size].view(DTYPES[dtype]).reshape(shape)
        self._latents.read(wanted.name, wanted.first, maps)
        return as_float(maps, dtype), checksum(maps, wanted.first)


def measure_slices(
    latents: TensorFile, measures: Mapping[str, Measure], first_image: int, threads: int = 1
) -> dict[str, Array]:
    """Return the values of every image at the cut points that `measures` names.

    `threads` slices are measured at once. The values depend neither on that nor on the slices, as
    long as a measure takes each image by itself. A value that is not finite is an error, which
    names its image; `first_image` is the number of the first one.
    """
    reader = _Reader(latents, measures)

    def run(wanted: _Slice) -> tuple[Array, int]:
        maps, total = reader.read(wanted)
        with np.errstate(invalid="ignore", over="ignore"):
            values = measures[wanted.name](maps)
        wrong = ~np.isfinite(values).all(axis=1)
        if wrong.any():
            image = first_image + wanted.first + int(np.argmax(wrong))
            raise VitscopeError(
                f"{latents.path}: the feature map at {wanted.name} is not finite, or too large, "
                f"for image {image}: check the checkpoint and the model's mean and std."
            )
        return values, total

    slices = {name: list(_slices(latents, name)) for name in measures}
    with ThreadPoolExecutor(threads) as pool:
        done = pool.map(run, [each for group in slices.values() for each in group])
        measured = {}
        for name, group in slices.items():
            values, sums = zip(*(next(done) for _ in group), strict=True)
            latents.check(name, sum(sums))
            measured[name] = np.concatenate(values)
        return measured
