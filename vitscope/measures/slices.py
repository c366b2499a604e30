"""Measure the maps of a shard, a piece at a time and in several threads."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vitscope.errors import VitscopeError
from vitscope.files.tensors import DTYPES, TensorFile, as_float, checksum

Array = npt.NDArray[Any]
# From maps (N, C, H, W) to the values of each image (N, K).
Measure = Callable[[Array], Array]

# A piece stays in a core's second-level cache.
PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class _Piece:
    """The maps of some images at one cut point."""

    name: str
    first: int
    images: int


def _pieces(latents: TensorFile, name: str) -> Iterator[_Piece]:
    maps = latents.mapped(name)
    step = max(1, PIECE_BYTES // maps[0].nbytes)
    for first in range(0, len(maps), step):
        yield _Piece(name, first, min(step, len(maps) - first))


class _Reader:
    """Read pieces to memory that is used again, each thread to its own."""

    def __init__(self, latents: TensorFile, names: Mapping[str, Any]) -> None:
        self._latents = latents
        self._shapes = {name: latents.shape(name)[1:] for name in names}
        self._local = threading.local()

    def read(self, piece: _Piece) -> tuple[Array, int]:
        """Return the maps of a piece, until the next one is read, and their checksum."""
        shape = (piece.images, *self._shapes[piece.name])
        dtype = self._latents.dtype(piece.name)
        size = int(np.prod(shape)) * DTYPES[dtype].itemsize
        buffer: Array = getattr(self._local, "buffer", np.empty(0, np.uint8))
        if len(buffer) < size:
            buffer = self._local.buffer = np.empty(size, np.uint8)
        maps = buffer[:size].view(DTYPES[dtype]).reshape(shape)
        self._latents.read(piece.name, piece.first, maps)
        return as_float(maps, dtype), checksum(maps, piece.first)


def measure_pieces(
    latents: TensorFile, measures: Mapping[str, Measure], first_image: int, threads: int = 1
) -> dict[str, Array]:
    """Return the values of every image at the cut points that `measures` names.

    Pieces are measured in `threads` at once. The values depend on neither as long as a measure
    takes each image by itself. What is not finite is an error, told with the number of the image,
    counted from `first_image`.
    """
    reader = _Reader(latents, measures)

    def run(piece: _Piece) -> tuple[Array, int]:
        maps, total = reader.read(piece)
        with np.errstate(invalid="ignore", over="ignore"):
            values = measures[piece.name](maps)
        wrong = ~np.isfinite(values).all(axis=1)
        if wrong.any():
            image = first_image + piece.first + int(np.argmax(wrong))
            raise VitscopeError(
                f"{latents.path}: the feature map at {piece.name} is not finite, or too large, for "
                f"image {image}: check the checkpoint and the model's mean and std."
            )
        return values, total

    pieces = {name: list(_pieces(latents, name)) for name in measures}
    with ThreadPoolExecutor(threads) as pool:
        done = pool.map(run, [piece for group in pieces.values() for piece in group])
        measured = {}
        for name, group in pieces.items():
            values, sums = zip(*(next(done) for _ in group), strict=True)
            latents.check(name, sum(sums))
            measured[name] = np.concatenate(values)
        return measured
