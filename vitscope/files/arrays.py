"""The type of arrays, arrays in .npy format, and the export of arrays for other programs."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from vitscope.errors import VitscopeError
from vitscope.files.whole import atomic_path

Array = npt.NDArray[Any]


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read an .npy file's header: shape, whether values are stored column by column, and dtype."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(file)


def format_shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "one number"


def map_array(file: Path, start: int, size: int) -> Array:
    """Memory-map an array in NumPy's format, from byte `start` of a file; unpickle nothing."""
    with file.open("rb") as stream:
        stream.seek(start)
        shape, by_column, dtype = read_npy_header(stream)
        offset = stream.tell()
        end = stream.seek(0, 2)
    if dtype.hasobject or by_column:
        raise ValueError(f"an array of {dtype}, by {'column' if by_column else 'row'}")
    needed = prod(shape) * dtype.itemsize
    found = min(start + size, end) - offset
    if needed != found or not needed:
        raise ValueError(f"{found} bytes for {format_shape(shape)} of {dtype}")
    return np.memmap(file, dtype, "r", offset, shape)


@dataclass(frozen=True)
class Exported:
    """The shape and dtype of an array; `rows` yields its rows in order, `block` at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    block: int
    rows: Callable[[], Iterator[Array]]

    @classmethod
    def of(cls, array: Array) -> "Exported":
        return cls(array.shape, array.dtype, len(np.atleast_1d(array)), lambda: iter([array]))


def write_arrays(
    path: Path, suffix: str, arrays: Mapping[str, Exported], facts: Mapping[str, str]
) -> None:
    """Write arrays to a file, whole or not at all; `facts` describe all of them."""
    with atomic_path(path) as temporary:
        FORMATS[suffix](temporary, arrays, facts)


def _write_arrays_as_npz(
    path: Path, arrays: Mapping[str, Exported], facts: Mapping[str, str]
) -> None:
    about = Exported.of(np.array(json.dumps(facts)))
    with ZipFile(path, "w") as archive:
        for name, array in {**arrays, "facts": about}.items():
            # Leave out the time of writing, so that the same arrays give the same bytes.
            with archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                header = {"descr": npy.dtype_to_descr(array.dtype), "shape": array.shape}
                npy.write_array_header_2_0(file, {**header, "fortran_order": False})
                for rows in array.rows():
                    file.write(np.ascontiguousarray(rows).tobytes())


def _write_arrays_as_hdf5(
    path: Path, arrays: Mapping[str, Exported], facts: Mapping[str, str]
) -> None:
    with _import_array_library("h5py").File(path, "w") as file:
        file.attrs.update(facts)
        for name, array in arrays.items():
            text = array.dtype.kind == "U"
            dtype = _import_array_library("h5py").string_dtype() if text else array.dtype
            _copy_rows(
                file.create_dataset(name, array.shape, dtype), array, object if text else None
            )


def _write_arrays_as_zarr(
    path: Path, arrays: Mapping[str, Exported], facts: Mapping[str, str]
) -> None:
    zarr = _import_array_library("zarr")
    with zarr.storage.ZipStore(path, mode="w") as store:
        group = zarr.create_group(store, attributes=dict(facts))
        for name, array in arrays.items():
            chunks = (array.block, *array.shape[1:])
            dtype = str if array.dtype.kind == "U" else array.dtype
            made = group.create_array(name, shape=array.shape, dtype=dtype, chunks=chunks)
            _copy_rows(made, array)


def _copy_rows(target: Any, array: Exported, dtype: type | None = None) -> None:
    first = 0
    for rows in array.rows():
        target[first : first + len(rows)] = rows if dtype is None else rows.astype(dtype)
        first += len(rows)


def _import_array_library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise VitscopeError(
            f"This format is written by the package {name}, which is not installed: pip install "
            f"{name}, or choose npz."
        ) from error


FORMATS = {
    "npz": _write_arrays_as_npz,
    "h5": _write_arrays_as_hdf5,
    "zarr.zip": _write_arrays_as_zarr,
}
