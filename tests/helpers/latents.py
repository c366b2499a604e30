import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from tests.helpers.golden import ARCHS, Golden
from vitscope.data.split import ROWS
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.networks.checkpoints.conversion import convert, load_converted_model
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.extraction import write_latents

Array = npt.NDArray[Any]
Maps = Sequence[Array] | Mapping[str, Array]


def written(path: Path, maps: Maps, dtype: str = "F32") -> TensorFile:
    """Write maps (N, C, H, W) by their names, or as map0, map1 and so on."""
    named = maps if isinstance(maps, Mapping) else {f"map{i}": each for i, each in enumerate(maps)}
    tensors = {name: (dtype, values.shape) for name, values in named.items()}
    rows = [*range(len(next(iter(named.values()))))]
    with TensorWriter(path, tensors, {ROWS: json.dumps(rows)}) as writer:
        for name, values in named.items():
            writer.write(name, 0, np.ascontiguousarray(values))
    return TensorFile(path)


def rounded(maps: Array) -> tuple[Array, Array]:
    """Return maps in bfloat16, as they are written, and the numbers that these are."""
    values = torch.from_numpy(maps).bfloat16()
    return values.view(torch.uint16).numpy(), values.float().numpy()


@dataclass(frozen=True)
class GoldenLatents:
    """The latents of a golden network, in shards with the position of the first image of each."""

    expected: dict[str, Any]
    blocks: pd.DataFrame
    shapes: list[tuple[int, ...]]
    shards: list[tuple[int, TensorFile]]


def golden_latents(golden: Golden, name: str, folder: Path) -> GoldenLatents:
    """Extract 16 images in two uneven shards, from the published checkpoint."""
    source, converted = folder / "published.pth.tar", folder / "converted.safetensors"
    torch.save(golden.state_dict(name), source)
    family, arch = ARCHS[name]
    data = {"classes": 100, "image_size": 32, "mean": [0.5, 0.5, 0.5]}
    network = {"family": family, "arch": arch, **data}
    convert(source, network, converted, label=name, origin="golden")
    model = load_converted_model(converted, network)
    blocks, _, cut_points, *_ = list_blocks(name, model, network)
    shapes = list(blocks[["channels", "height", "width"]].itertuples(index=False, name=None))
    images, _ = golden.images(16)
    shards = []
    for first, last in ((0, 10), (10, 16)):
        path = folder / f"{first}.safetensors"
        write_latents(model, cut_points, shapes, images[first:last].split(4), last - first, path)
        shards.append((first, TensorFile(path)))
    return GoldenLatents(golden.expected[name], blocks, shapes, shards)
