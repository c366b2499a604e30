"""The trajectory of the weights in training: record it, and compute its polar coordinates."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.tensors import row_sums

if TYPE_CHECKING:
    from torch import nn

# Read weights in pieces of this many numbers, so that memory never holds all moments.
PIECE = 1 << 18


def polar_trajectory(count: int, tensors: Iterable[Sequence[Array]]) -> pd.DataFrame:
    """Return the radius and angle of the weights at each of `count` moments in training, in order.

    For each tensor of the weights, `tensors` has its flattened values at every moment. With d_t =
    w_t - w_end, the radius is |d_t| / |d_0| and the angle is between d_t and d_0, in radians. Both
    are 0 at the end, where d_end has no direction.
    """
    check_trajectory_length(count)
    # Dot products of d_t with itself and with d_0, at every moment.
    squares, products = np.zeros(count), np.zeros(count)
    for moments in tensors:
        for first in range(0, moments[0].size, PIECE):
            piece = np.stack([m[first : first + PIECE].astype(np.float64) for m in moments])
            piece -= piece[-1].copy()
            squares += np.vecdot(piece, piece)
            products += np.vecdot(piece, piece[0])
    start = squares[0]
    if start == 0:
        raise VitscopeError(
            "The first and the last snapshot of the trajectory are the same weights: name the "
            "`snapshots` of a model from its initialization to its end."
        )
    lengths = np.sqrt(squares)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = products / (lengths * lengths[0])
    angles = np.arccos(np.clip(cosines, -1, 1))
    angles[squares == 0] = 0
    return pd.DataFrame({"radius": lengths / lengths[0], "angle": angles})


def check_trajectory_length(moments: int) -> None:
    if moments < 3:
        raise VitscopeError(
            f"A trajectory needs 3 moments at least, the first, the last and one between them, "
            f"and there are {moments}: name more `snapshots` of the model, or train for longer."
        )


class TrajectoryFile:
    """A file of a trajectory: a model's parameters at several moments in its training.

    The parameters are stored in float32, with a checksum for each moment.
    """

    def __init__(self, path: Path, model: "nn.Module", sums: Sequence[int] = ()) -> None:
        """Open a new file or, given checksums, the file of their moments; remove later moments."""
        self._path, self.sums = path, list(sums)
        self._size = sum(parameter.numel() for parameter in model.parameters())
        if sums:
            try:
                shape = (len(self.sums), self._size)
                found = row_sums(np.memmap(path, np.float32, "r", shape=shape))
            except (OSError, ValueError) as error:
                raise VitscopeError(f"{path} ends early or is not there.") from error
            if found.tolist() != self.sums:
                raise VitscopeError(f"{path} is damaged.")
        self._file = path.open("r+b" if sums else "wb")
        self._file.truncate(len(sums) * self._size * np.float32().itemsize)
        self._file.seek(0, 2)

    def add(self, model: "nn.Module") -> None:
        import torch

        # Parameters in another memory format have no flat view, so reshape copies them in order.
        flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
        raw = flat.to("cpu", torch.float32).numpy()
        self._file.write(raw.tobytes())
        self._file.flush()
        self.sums.append(int(row_sums(raw[None])[0]))

    def polar(self) -> pd.DataFrame:
        kept = np.memmap(self._path, np.float32, "r").reshape(-1, self._size)
        return polar_trajectory(len(kept), [list(kept)])
