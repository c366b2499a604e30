"""Measure the maps of a shard slice by slice, in several threads."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.tensors import DTYPES, as_float, checksum
from vitscope.measures.given import Latents, OnLatents

# The maximum size of a slice of several images: it fits the L2 cache of a core.
SLICE_BYTES = 1 << 20

# A slice: the name of a cut point, the index of the first image, and the number of images.
_Slice = tuple[str, int, int]


def _cut_into_slices(latents: Latents, name: str) -> list[_Slice]:
    images, *shape = latents.shape(name)
    step = max(1, SLICE_BYTES // (prod(shape) * DTYPES[latents.dtype(name)].itemsize))
    return [(name, first, min(step, images - first)) for first in range(0, images, step)]


def _read_slice(latents: Latents, wanted: _Slice, of_thread: threading.local) -> tuple[Array, int]:
    """Return the maps of a slice, valid until the thread's next read, and their checksum.

    Each read from a file overwrites the buffer of the thread. Maps that are already in memory are
    not copied, and their checksum is 0.
    """
    name, first, images = wanted
    shape, dtype = (images, *latents.shape(name)[1:]), latents.dtype(name)
    size = prod(shape) * DTYPES[dtype].itemsize
    buffer: Array = getattr(of_thread, "buffer", np.empty(0, np.uint8))
    if len(buffer) < size:
        buffer = of_thread.buffer = np.empty(size, np.uint8)
    rows = buffer[:size].view(DTYPES[dtype]).reshape(shape)
    maps = latents.read(name, first, rows)
    total = checksum(maps, first) if maps is rows else 0
    return as_float(maps, dtype), total


def measure_slices(
    given: OnLatents, measures: Mapping[str, Callable[[Any], Any]], on_gpu: bool = False
) -> dict[str, Array]:
    """Return the values of every image at the cut points that `measures` names.

    A measure turns maps (N, C, H, W) into the values of each image (N, K). Several threads measure
    slices. If a measure treats each image by itself, as it should, the values depend neither on the
    number of threads nor on the slices. A value that is not finite raises an error that names its
    image. With `on_gpu`, measures take tensors too, and maps on a GPU are measured there.
    """
    latents = given.latents
    there = {name: latents.on_gpu(name) for name in measures} if on_gpu else {}
    if any(maps is not None for maps in there.values()):
        # Start the work for all cut points before waiting for the first result.
        found = {name: measures[name](maps) for name, maps in there.items()}
        measured = {name: values.cpu().numpy() for name, values in found.items()}
        for name, values in measured.items():
            _check_slice_is_finite(given, name, 0, values)
        return measured
    of_thread = threading.local()

    def measure_slice(wanted: _Slice) -> tuple[Array, int]:
        name, first, _ = wanted
        maps, total = _read_slice(latents, wanted, of_thread)
        with np.errstate(invalid="ignore", over="ignore"):
            values = measures[name](maps)
        _check_slice_is_finite(given, name, first, values)
        return values, total

    slices = {name: _cut_into_slices(latents, name) for name in measures}
    with ThreadPoolExecutor(given.threads) as pool:
        done = pool.map(measure_slice, [each for group in slices.values() for each in group])
        measured = {}
        for name, group in slices.items():
            values, sums = zip(*(next(done) for _ in group), strict=True)
            latents.check(name, sum(sums))
            measured[name] = np.concatenate(values)
        return measured


def _check_slice_is_finite(given: OnLatents, name: str, first: int, values: Array) -> None:
    wrong = ~np.isfinite(values).all(axis=1)
    if wrong.any():
        image = given.first_image + first + int(np.argmax(wrong))
        raise VitscopeError(
            f"{given.latents.path}: the feature map at {name} is not finite, or too large, for "
            f"image {image}: check the checkpoint and the model's mean and std."
        )
