"""What is kept of a training while it runs: snapshots as files, and the way of the parameters."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from vitscope.networks.weights_file import write_weights
from vitscope.training.polar import polar
from vitscope.training.recipe import Recipe


def write_snapshot(
    model: nn.Module, path: Path, dtype: torch.dtype, metadata: Mapping[str, str]
) -> None:
    """Write the weights of a model, floating-point ones in the given precision."""
    weights = {
        name: tensor.detach().to("cpu", dtype if tensor.is_floating_point() else None)
        for name, tensor in model.state_dict().items()
    }
    write_weights(path, weights, metadata)


class Moments:
    """The parameters of a model at every epoch, in a file that vanishes with its last reader."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (it outlives this call)
        self._size = 0

    def add(self, model: nn.Module) -> None:
        """Keep the parameters as they are now, one after another in float32."""
        # Parameters in another memory format have no flat view: they are copied in their order.
        flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
        raw = flat.to("cpu", torch.float32).numpy()
        self._size = raw.size
        self._file.write(raw.tobytes())

    def polar(self) -> pd.DataFrame:
        """Return the trajectory from the first moment to the last."""
        self._file.flush()
        kept = np.memmap(self._file, np.float32, "r").reshape(-1, self._size)
        return polar(list(kept))


@dataclass(frozen=True)
class Snapshots:
    """Writes the weights of a model at moments of its training."""

    directory: Path
    recipe: Recipe
    facts: Mapping[str, str]

    def write(self, model: nn.Module, name: str, epoch: int) -> None:
        """Write the weights as they are after so many epochs."""
        facts = {**self.facts, "snapshot": name, "epoch": str(epoch)}
        dtype = getattr(torch, self.recipe["snapshot_dtype"])
        write_snapshot(model, self.directory / f"{name}.safetensors", dtype, facts)
