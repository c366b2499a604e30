"""Extract the feature maps of all cut points, in one forward pass, to a file or into memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.data.split import Split, shard_rows
from vitscope.files.arrays import Array
from vitscope.files.tensors import TensorWriter
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import BLOCKS, CutPoint, read_cut_points

DTYPES = {"float32": (torch.float32, "F32"), "bfloat16": (torch.bfloat16, "BF16")}

Shape = tuple[int, int, int]


def shapes_of(blocks: Path | str) -> dict[str, Shape]:
    table = BLOCKS.read(blocks).set_index("name")[["channels", "height", "width"]]
    return dict(zip(table.index, table.itertuples(index=False, name=None), strict=True))


def as_stored(maps: Tensor) -> Array:
    """Return maps as an array for a file: bfloat16 as 16-bit integers with the same bytes."""
    return (maps.view(torch.uint16) if maps.dtype is torch.bfloat16 else maps).numpy()


class _LatentsWriter(ThreadPoolExecutor):
    """Writes latents from two buffers (pinned for a GPU) while the model computes more latents."""

    def __init__(self, writer: TensorWriter, dtype: torch.dtype, from_gpu: bool) -> None:
        super().__init__(1)
        self._writer, self._from_gpu = writer, from_gpu
        # Reuse the buffers, because touching new memory costs more than the copy.
        self._staged = [torch.empty(0, dtype=dtype) for _ in range(2)]
        self._written: list[Future[None]] = []

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for written in self._written:
            written.result()

    def write(self, name: str, first_row: int, latent: Tensor) -> None:
        """Copy latents and queue them for writing; raise the error of an earlier write, if any."""
        if len(self._written) == len(self._staged):
            self._written.pop(0).result()
        buffer = self._staged.pop(0)
        if buffer.numel() < latent.numel():
            buffer = torch.empty(latent.numel(), dtype=buffer.dtype, pin_memory=self._from_gpu)
        self._staged.append(buffer)
        rows = buffer[: latent.numel()].view(latent.shape)
        copied: Any = None
        if self._from_gpu:
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            # Only contiguous bytes are copied without waiting.
            rows.copy_(latent.to(rows.dtype).contiguous(), non_blocking=True)
            copied.record()
        else:
            rows.copy_(latent)
        self._written.append(self.submit(self._write, name, first_row, rows, copied))

    def _write(self, name: str, first_row: int, rows: Tensor, copied: Any) -> None:
        if copied:
            copied.synchronize()
        self._writer.write(name, first_row, as_stored(rows))


def write_latents(
    model: nn.Module,
    cut_points: Sequence[CutPoint],
    shapes: Sequence[Shape],
    batches: Iterable[Tensor],
    images: int,
    path: Path | str,
    *,
    dtype: str = "float32",
    device: torch.device | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write the latents of all `batches` as they are computed; `images` is the number of images."""
    torch_dtype, file_dtype = DTYPES[dtype]
    tensors = {
        point.name: (file_dtype, (images, *shape))
        for point, shape in zip(cut_points, shapes, strict=True)
    }
    model = model.eval().to(device)
    first_row, from_gpu = 0, device is not None and device.type == "cuda"
    with TensorWriter(path, tensors, metadata or {}) as writer:
        with _LatentsWriter(writer, torch_dtype, from_gpu) as thread:

            def write_latent(index: int, latent: Tensor) -> None:
                thread.write(cut_points[index].name, first_row, latent)

            with capturing(model, cut_points, write_latent), torch.inference_mode():
                for batch in batches:
                    model(batch.to(device))
                    first_row += len(batch)
        if first_row != images:
            raise ValueError(f"got {first_row} images, expected {images}")


class HeldMaps:
    """Holds the maps of up to `room` images at every cut point, on the device of the network."""

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
        self._maps[self.names[index]][self.images : self.images + len(maps)] = maps

    def _held(self, name: str) -> Tensor:
        return self._maps[name][: self.images]

    def on_gpu(self, name: str) -> Tensor | None:
        maps = self._held(name)
        return maps if maps.is_cuda else None

    def dtype(self, name: str) -> str:
        return self._file_dtype

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._held(name).shape)

    def mapped(self, name: str) -> Array:
        return as_stored(self._held(name).cpu())

    def read(self, name: str, first_row: int, rows: Array) -> Array:
        """Return `len(rows)` maps, from `first_row` on, as a read-only array."""
        maps = as_stored(self._held(name)[first_row : first_row + len(rows)].cpu())
        maps.flags.writeable = False
        return maps

    def check(self, name: str, total: int) -> None:
        """Do nothing: only maps from a disk need a checksum."""

    def verify(self, *names: str) -> None: ...


def hold_latents_of_shard(
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
    """Pass a shard's images through the network once; call `measure` after every `together` images.

    The arguments of `measure` are the index of the group's first image in the shard, and the maps
    of the group.
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
