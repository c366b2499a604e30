"""Arrays in the format of NumPy, wherever in a file they begin."""

from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy


class Header(NamedTuple):
    """The header of an array, before its values."""

    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]


def read_header(file: IO[bytes]) -> Header:
    """Read the header of an array; the file then stands at its first value."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_column, dtype = read(file)
    return Header(tuple(shape), by_column, dtype)
