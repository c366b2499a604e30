"""Arrays in the format of NumPy, wherever in a file they begin."""

from typing import IO, Any

import numpy as np
from numpy.lib import format as npy


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an array: its shape, whether it lies by column, and its type.

    The file then stands at its first value.
    """
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(file)
