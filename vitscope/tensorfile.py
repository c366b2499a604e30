"""Safetensors files that are written row by row and read through a memory map.

The safetensors library writes a file from tensors that are all in memory. Data sets and latents
are larger than that, while their shapes are known before the first row: so the header is written
first and every row goes to its place in the file. Any safetensors reader can open the result.
"""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from vitscope.errors import VitscopeError
from vitscope.files import atomic_path

# NumPy has no bfloat16: such a tensor is read as its 16 raw bits.
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
ALIGNMENT = 64
LARGEST_HEADER = 100_000_000


def as_float(raw: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Return raw values of the type F32 or BF16 as float32; a bfloat16 is the upper half of one."""
    if dtype != "BF16":
        return raw
    return (raw.astype(np.uint32) << 16).view(np.float32)


def _header(
    tensors: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str]
) -> bytes:
    entries: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    offset = 0
    for name, (dtype, shape) in tensors.items():
        end = offset + prod(shape) * DTYPES[dtype].itemsize
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-(len(text) + 8) % ALIGNMENT)


def _checked_end(entries: Mapping[str, Any]) -> int:
    """Return where the last tensor ends; they must follow one another, as their shapes say."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        size = prod(entry["shape"]) * DTYPES[entry["dtype"]].itemsize
        if min(entry["shape"], default=0) < 0 or entry["data_offsets"] != [end, end + size]:
            raise ValueError(name)
        end += size
    return end


class TensorWriter:
    """Write the rows of tensors of known shape, in any order, to one safetensors file."""

    def __init__(
        self,
        path: Path | str,
        tensors: Mapping[str, tuple[str, tuple[int, ...]]],
        metadata: Mapping[str, str],
    ) -> None:
        self._tensors = dict(tensors)
        header = _header(tensors, metadata)
        self._prefix = len(header).to_bytes(8, "little") + header
        entries = json.loads(header)
        start = len(self._prefix)
        self._starts = {name: start + entries[name]["data_offsets"][0] for name in tensors}
        self._size = start + max((entries[name]["data_offsets"][1] for name in tensors), default=0)
        self._path = path

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            partial = stack.enter_context(atomic_path(self._path))
            self._file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            stack.callback(os.close, self._file)
            os.truncate(self._file, self._size)
            self._write_all(self._prefix, 0)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def _write_all(self, data: bytes | memoryview, offset: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, offset)
            view, offset = view[written:], offset + written

    def write(self, name: str, first_row: int, rows: npt.NDArray[Any]) -> None:
        """Write `rows` to their place, the first of them at `first_row`."""
        dtype, shape = self._tensors[name]
        if rows.dtype != DTYPES[dtype] or rows.ndim != len(shape) or rows.shape[1:] != shape[1:]:
            raise ValueError(f"{name}: got {rows.dtype}{rows.shape}, expected {dtype}{shape}")
        if rows.ndim and not 0 <= first_row <= shape[0] - len(rows):
            raise ValueError(f"{name}: {len(rows)} rows from {first_row} on, of {shape[0]}")
        row_bytes = prod(shape[1:]) * DTYPES[dtype].itemsize
        data = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        self._write_all(data, self._starts[name] + first_row * row_bytes)


class TensorFile:
    """Read a safetensors file through a memory map."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            size = self.path.stat().st_size
            with self.path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if not 2 <= length <= min(size - 8, LARGEST_HEADER):
                    raise ValueError("header length")
                entries: dict[str, Any] = json.loads(file.read(length))
            self.metadata: dict[str, str] = entries.pop("__metadata__", {})
            self._start = 8 + length
            self._entries = entries
            end = _checked_end(entries)
        except OSError as error:
            raise VitscopeError(f"Cannot read {self.path}: {error.strerror}.") from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise VitscopeError(
                f"{self.path} is not a safetensors file of vitscope: delete it and run again."
            ) from error
        if size != self._start + end:
            raise VitscopeError(
                f"{self.path} is damaged: it has {size} bytes and should have "
                f"{self._start + end}; delete it and run again."
            )

    @property
    def names(self) -> list[str]:
        """The names of the tensors, in the order of the file."""
        return list(self._entries)

    def dtype(self, name: str) -> str:
        """The safetensors type of a tensor, for example F32."""
        return str(self._entries[name]["dtype"])

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return a tensor as a read-only memory map."""
        entry = self._entries[name]
        shape = tuple(entry["shape"])
        if prod(shape) == 0:
            return np.zeros(shape, DTYPES[entry["dtype"]])
        return np.memmap(
            self.path,
            dtype=DTYPES[entry["dtype"]],
            mode="r",
            offset=self._start + entry["data_offsets"][0],
            shape=shape,
        )

    def read(self, name: str, first_row: int, rows: npt.NDArray[Any]) -> None:
        """Copy the rows of a tensor from `first_row` on to `rows`, which has their shape and type.

        Where every row is read once, this is faster than the memory map: memory that is used again
        costs less than pages that have to be mapped first.
        """
        entry = self._entries[name]
        dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
        if rows.dtype != dtype or rows.shape[1:] != shape[1:]:
            raise ValueError(f"{name}: got {rows.dtype}{rows.shape}, expected {dtype}{shape}")
        if not 0 <= first_row <= shape[0] - len(rows):
            raise ValueError(f"{name}: {len(rows)} rows from {first_row} on, of {shape[0]}")
        row_bytes = prod(shape[1:]) * dtype.itemsize
        start = self._start + entry["data_offsets"][0] + first_row * row_bytes
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                copied = file.readinto(rows.data)
        except OSError as error:
            raise VitscopeError(f"Cannot read {self.path}: {error.strerror}.") from error
        if copied != rows.nbytes:
            raise VitscopeError(f"{self.path} is damaged: it ends early; delete it and run again.")
