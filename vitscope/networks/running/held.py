"""The feature maps of some images in memory, which are read as those in a file are."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.data.image_rows import shard_rows
from vitscope.data.split import Split
from vitscope.files.arrays import Array
from vitscope.networks.finding.block_table import read_cut_points
from vitscope.networks.finding.capture import capturing
from vitscope.networks.running.latents import DTYPES, Shape, as_stored, shapes_of


class HeldMaps:
    """The maps of up to `room` images at every cut point, in memory that is used again and again.

    They lie where the network runs. `path` is what errors call them.
    """

    def __init__(
        self, path: str, shapes: Mapping[str, Shape], room: int, dtype: str, device: torch.device
    ) -> None:
        kind, self._file_dtype = DTYPES[dtype]
        self.path, self.names, self.images = path, [*shapes], 0
        self._maps = {
            name: torch.empty(room, *shape, dtype=kind, device=device)
            for name, shape in shapes.items()
        }

    def put(self, index: int, maps: Tensor) -> None:
        """Copy the maps of a batch behind those of the batches before it."""
        self._maps[self.names[index]][self.images : self.images + len(maps)] = maps

    def _held(self, name: str) -> Tensor:
        return self._maps[name][: self.images]

    def on_gpu(self, name: str) -> Tensor | None:
        """Return the maps of a cut point where they lie, if that is a GPU."""
        maps = self._held(name)
        return maps if maps.is_cuda else None

    def dtype(self, name: str) -> str:
        """Return the type of the maps, as safetensors calls it."""
        return self._file_dtype

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the maps of a cut point."""
        return tuple(self._held(name).shape)

    def mapped(self, name: str) -> Array:
        """Return the maps of a cut point in the memory of the processor."""
        return as_stored(self._held(name).cpu())

    def read(self, name: str, first_row: int, rows: Array) -> Array:
        """Return maps from `first_row` on, as many as `rows`, to be read only."""
        maps = as_stored(self._held(name)[first_row : first_row + len(rows)].cpu())
        maps.flags.writeable = False
        return maps

    def check(self, name: str, total: int) -> None:
        """Find nothing wrong: a checksum is for what was on a disk."""

    def verify(self, *names: str) -> None:
        """Find nothing wrong."""


def hold_shard(
    model: nn.Module,
    blocks: Path | str,
    images: Split,
    measure: Callable[[int, HeldMaps], None],
    *,
    label: str,
    shard: int,
    selection: Mapping[str, Any],
    settings: Mapping[str, Any],
    batch_size: int,
    together: int,
    dtype: str,
    device: torch.device,
) -> None:
    """Run the images of a shard once, and measure the maps of so many of them `together`.

    `measure` is called with the position of the first of them in the shard, and their maps, which
    are there until it returns.
    """
    rows = shard_rows(len(images), shard, **selection)
    held = HeldMaps(label, shapes_of(blocks), min(together, len(rows)), dtype, device)
    model, done = model.eval().to(device), 0
    with capturing(model, read_cut_points(blocks), held.put), torch.inference_mode():
        for batch in images.batches(rows, batch_size, settings["mean"], settings["std"]):
            model(batch.to(device))
            held.images, done = held.images + len(batch), done + len(batch)
            if held.images == together or done == len(rows):
                measure(done - held.images, held)
                held.images = 0
