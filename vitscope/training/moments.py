"""The way of the parameters in training: all of them at every epoch, in a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from vitscope.errors import VitscopeError
from vitscope.files.tensors import row_sums
from vitscope.training.polar import polar


class Moments:
    """The parameters of a model at moments of its training, one after another in float32.

    `sums` are the checksums of the moments, by which what a training left is known again.
    """

    def __init__(self, path: Path, model: nn.Module, sums: Sequence[int] = ()) -> None:
        """Open a new file, or one that has these moments and perhaps more, which are cut off."""
        self._path, self.sums = path, list(sums)
        self._size = sum(parameter.numel() for parameter in model.parameters())
        if sums:
            self._check()
        self._file = path.open("r+b" if sums else "wb")
        self._file.truncate(len(sums) * self._size * np.float32().itemsize)
        self._file.seek(0, 2)

    def _check(self) -> None:
        try:
            shape = (len(self.sums), self._size)
            found = row_sums(np.memmap(self._path, np.float32, "r", shape=shape))
        except (OSError, ValueError) as error:
            raise VitscopeError(f"{self._path} ends early or is not there.") from error
        if found.tolist() != self.sums:
            raise VitscopeError(f"{self._path} is damaged.")

    def add(self, model: nn.Module) -> None:
        """Keep the parameters as they are now."""
        # Parameters in another memory format have no flat view: they are copied in their order.
        flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
        raw = flat.to("cpu", torch.float32).numpy()
        self._file.write(raw.tobytes())
        self._file.flush()
        self.sums.append(int(row_sums(raw[None])[0]))

    def polar(self) -> pd.DataFrame:
        """Return the trajectory from the first moment to the last."""
        kept = np.memmap(self._path, np.float32, "r").reshape(-1, self._size)
        return polar(list(kept))
