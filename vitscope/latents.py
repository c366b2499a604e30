"""Extract the feature maps of all cut points, in one forward pass, to one file per shard."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from vitscope.data.artefact import select
from vitscope.errors import VitscopeError
from vitscope.families import CutPoint
from vitscope.hooks import reading
from vitscope.tensorfile import TensorWriter

DTYPES = {"float32": (torch.float32, "F32"), "bfloat16": (torch.bfloat16, "BF16")}

Shape = tuple[int, int, int]


def pick_device(wanted: str) -> torch.device:
    """Return the device to run on; a missing CUDA device that was asked for is an error."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise VitscopeError(
            "device: the study asks for cuda and this machine has none; set device to auto or cpu."
        )
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def shard_rows(
    available: int, shard: int, images: int, seed: int | None, shard_size: int
) -> list[int]:
    """Return the rows of an artefact that make up a shard of the images that are measured."""
    if images > available:
        raise VitscopeError(
            f"analysis.images: the study measures {images} images and the split has {available}: "
            f"lower analysis.images, or say in the split how many `images` it has."
        )
    first = shard * shard_size
    rows: list[int] = select(available, images, seed)[first : first + shard_size].tolist()
    return rows


def extract(
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
    """Write the (N, C, H, W) latents of `batches`, `images` in all, at every cut point.

    Every map goes to the file as soon as it exists: no more than one batch is in memory.
    """
    torch_dtype, file_dtype = DTYPES[dtype]
    tensors = {
        point.name: (file_dtype, (images, *shape))
        for point, shape in zip(cut_points, shapes, strict=True)
    }
    model = model.eval().to(device)
    first_row = 0
    with TensorWriter(path, tensors, metadata or {}) as writer:

        def store(index: int, latent: Tensor) -> None:
            rows = latent.to(device="cpu", dtype=torch_dtype).contiguous()
            if torch_dtype is torch.bfloat16:
                rows = rows.view(torch.uint16)
            writer.write(cut_points[index].name, first_row, rows.numpy())

        with reading(model, cut_points, store), torch.inference_mode():
            for batch in batches:
                model(batch.to(device))
                first_row += len(batch)
        if first_row != images:
            raise ValueError(f"got {first_row} images, expected {images}")
