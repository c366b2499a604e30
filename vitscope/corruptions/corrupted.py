"""Corrupted images as jobs read them: one file per corruption, mapped into memory."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitscope.corruptions import SEVERITIES
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile


def tensor_name(severity: int) -> str:
    """Return the name of the tensor that holds the images of a severity."""
    return f"severity{severity}"


class CorruptedImages:
    """Images under one corruption, mapped into memory."""

    def __init__(self, path: Path | str) -> None:
        self._file = TensorFile(path)
        if "corruption" not in self._file.metadata or "rows" not in self._file.names:
            raise VitscopeError(f"{path} holds no corrupted images: delete it and run again.")
        self.corruption = self._file.metadata["corruption"]
        # The rows of the images in the file of their split.
        self.rows: npt.NDArray[np.int64] = self._file.array("rows")

    @property
    def severities(self) -> list[int]:
        """The severities, in ascending order."""
        return [severity for severity in SEVERITIES if tensor_name(severity) in self._file.names]

    def images(self, severity: int) -> npt.NDArray[np.uint8]:
        """Return the images of a severity, (N, 3, H, W)."""
        return self._file.array(tensor_name(severity))
