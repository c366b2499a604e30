"""Safetensors files that are written row by row and read through a memory map.

Data sets and latents are larger than memory, but their shapes are known in advance: the header is
written first, and then each row at its offset. Any safetensors reader can open the result.

The metadata hold a checksum of the header and of each tensor. For speed, the checksum of a tensor
is a weighted sum over its rows: the sum of a row's 64-bit words, times an odd number that depends
on the row's position. It detects any change of one word, and changes of several words of a row
unless they cancel.
"""

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from vitscope.errors import VitscopeError
from vitscope.files.whole import atomic_path

# The safetensors type and the shape of each tensor, by name.
Tensors = Mapping[str, tuple[str, tuple[int, ...]]]
# NumPy has no bfloat16: such a tensor is read as raw 16-bit numbers.
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
CHECKSUMS = "checksums"
HEADER_DIGITS, TENSOR_DIGITS = 8, 16
WORDS = (np.uint64, np.uint32, np.uint16, np.uint8)
MODULUS = 1 << 64
# The size of the blocks in which tensors are summed, which fit into a core's second-level cache.
BLOCK_BYTES = 1 << 20


def as_float(raw: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Return raw F32 or BF16 values as float32; a bfloat16 is the upper half of a float32."""
    if dtype != "BF16":
        return raw
    return (raw.astype(np.uint32) << 16).view(np.float32)


def row_sums(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the sum of the words of each contiguous row: of the widest that a row is made of."""
    count = len(rows) if rows.ndim else 1
    if rows.size == 0:
        return np.zeros(count, np.uint64)
    data = rows.reshape(-1).view(np.uint8).reshape(count, -1)
    word = next(kind for kind in WORDS if data.shape[1] % np.dtype(kind).itemsize == 0)
    sums: npt.NDArray[np.uint64] = data.view(word).sum(axis=1, dtype=np.uint64)
    return sums


def checksum(rows: npt.NDArray[Any], first_row: int) -> int:
    """Return the checksum of contiguous rows; the checksums of all rows add up to the tensor's."""
    sums = row_sums(rows)
    weights = np.arange(2 * first_row + 1, 2 * (first_row + len(sums)), 2, dtype=np.uint64)
    return int(np.dot(sums, weights))


def _encode_header(tensors: Tensors, metadata: Mapping[str, str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    offset = 0
    for name, (dtype, shape) in tensors.items():
        end = offset + prod(shape) * DTYPES[dtype].itemsize
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-(len(text) + 8) % ALIGNMENT)


def _read_tensor_checksums(header: bytes, stored: str, names: list[str]) -> dict[str, int]:
    if len(stored) != HEADER_DIGITS + TENSOR_DIGITS * len(names):
        raise ValueError(CHECKSUMS)
    blank = "0" * HEADER_DIGITS + stored[HEADER_DIGITS:]
    own = zlib.crc32(header.replace(stored.encode(), blank.encode(), 1))
    if stored[:HEADER_DIGITS] != f"{own:0{HEADER_DIGITS}x}":
        raise ValueError("header")
    starts = range(HEADER_DIGITS, len(stored), TENSOR_DIGITS)
    sums = [int(stored[start : start + TENSOR_DIGITS], 16) for start in starts]
    return dict(zip(names, sums, strict=True))


def _find_end_of_tensors(entries: Mapping[str, Any]) -> int:
    """Return where the last tensor ends; refuse gaps, overlaps and wrong sizes."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        size = prod(entry["shape"]) * DTYPES[entry["dtype"]].itemsize
        if min(entry["shape"], default=0) < 0 or entry["data_offsets"] != [end, end + size]:
            raise ValueError(name)
        end += size
    return end


class TensorWriter:
    """Writes rows of tensors of known shapes, each once and in any order, to a safetensors file."""

    def __init__(self, path: Path | str, tensors: Tensors, metadata: Mapping[str, str]) -> None:
        self._tensors, self._metadata = dict(tensors), dict(metadata)
        self._sums = dict.fromkeys(tensors, 0)
        header = self._header_with_checksums()
        entries = json.loads(header)
        start = 8 + len(header)
        self._starts = {name: start + entries[name]["data_offsets"][0] for name in tensors}
        self._size = start + max((entries[name]["data_offsets"][1] for name in tensors), default=0)
        self._path = path

    def __enter__(self) -> Self:
        self._context = self._open()
        return self._context.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    @contextmanager
    def _open(self) -> Iterator[Self]:
        with atomic_path(self._path) as partial, partial.open("wb", buffering=0) as file:
            file.truncate(self._size)
            self._file = file.fileno()
            yield self
            header = self._header_with_checksums()
            self._write_bytes(len(header).to_bytes(8, "little") + header, 0)

    def _header_with_checksums(self) -> bytes:
        sums = "".join(f"{each % MODULUS:0{TENSOR_DIGITS}x}" for each in self._sums.values())
        blank = {**self._metadata, CHECKSUMS: "0" * HEADER_DIGITS + sums}
        own = f"{zlib.crc32(_encode_header(self._tensors, blank)):0{HEADER_DIGITS}x}"
        return _encode_header(self._tensors, {**blank, CHECKSUMS: own + sums})

    def _write_bytes(self, data: bytes | memoryview, offset: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, offset)
            view, offset = view[written:], offset + written

    def amend(self, key: str, value: str) -> None:
        """Set a metadata entry to a value as long as its placeholder."""
        if len(value) != len(self._metadata[key]):
            raise ValueError(f"{key}: {value!r} has not the length of {self._metadata[key]!r}")
        self._metadata[key] = value

    def write(self, name: str, first_row: int, rows: npt.NDArray[Any]) -> None:
        """Write `rows` of a tensor from `first_row` on, and add them to its checksum."""
        dtype, shape = self._tensors[name]
        if rows.dtype != DTYPES[dtype] or rows.ndim != len(shape) or rows.shape[1:] != shape[1:]:
            raise ValueError(f"{name}: got {rows.dtype}{rows.shape}, expected {dtype}{shape}")
        if rows.ndim and not 0 <= first_row <= shape[0] - len(rows):
            raise ValueError(f"{name}: {len(rows)} rows from {first_row} on, of {shape[0]}")
        row_bytes = prod(shape[1:]) * DTYPES[dtype].itemsize
        rows = np.ascontiguousarray(rows).reshape(rows.shape)
        data = rows.reshape(-1).view(np.uint8).data
        self._write_bytes(data, self._starts[name] + first_row * row_bytes)
        self._sums[name] += checksum(rows, first_row)


class TensorFile:
    """Reads a safetensors file that a `TensorWriter` wrote, and notices damage."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            size = self.path.stat().st_size
            with self.path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if not 2 <= length <= min(size - 8, LARGEST_HEADER):
                    raise ValueError("header length")
                header = file.read(length)
            entries: dict[str, Any] = json.loads(header)
            self.metadata: dict[str, str] = entries.pop("__metadata__", {})
            self.names = list(entries)
            self._sums = _read_tensor_checksums(header, self.metadata.pop(CHECKSUMS), self.names)
            self._start = 8 + length
            self._entries = entries
            end = _find_end_of_tensors(entries)
        except OSError as error:
            raise VitscopeError(f"Cannot read {self.path}: {error.strerror}.") from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise VitscopeError(
                f"{self.path} is not a safetensors file of vitscope: delete it and run again."
            ) from error
        if size != self._start + end:
            raise self._damage_error(f"it has {size} bytes and should have {self._start + end}")

    def _damage_error(self, how: str) -> VitscopeError:
        return VitscopeError(f"{self.path} is damaged: {how}; delete it and run again.")

    def dtype(self, name: str) -> str:
        """Return the safetensors type of a tensor, for example F32."""
        return str(self._entries[name]["dtype"])

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._entries[name]["shape"])

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return a tensor as a read-only memory map after checking every byte."""
        self.verify(name)
        return self.mapped(name)

    def on_gpu(self, name: str) -> None:
        """Return None: a tensor in a file is on no GPU."""

    def mapped(self, name: str) -> npt.NDArray[Any]:
        """Return a tensor as a read-only memory map; the caller must `check` what it reads."""
        dtype, shape = DTYPES[self.dtype(name)], self.shape(name)
        if prod(shape) == 0:
            return np.zeros(shape, dtype)
        start = self._start + self._entries[name]["data_offsets"][0]
        return np.memmap(self.path, dtype, "r", start, shape)

    def verify(self, *names: str) -> None:
        """Read the named tensors, or all if no name is given, and refuse any that was changed."""
        for name in names or self.names:
            if name not in self._sums:
                continue
            shape = self.shape(name)
            count = shape[0] if shape else 1
            row = np.dtype((DTYPES[self.dtype(name)], shape[1:]))
            block = np.empty(max(1, BLOCK_BYTES // max(1, row.itemsize)), row)
            total = 0
            for first in range(0, count, len(block)):
                rows = block[: count - first]
                self._read_bytes(name, first * row.itemsize, rows)
                total += checksum(rows, first)
            self.check(name, total)

    def check(self, name: str, total: int) -> None:
        """Refuse a tensor if `total`, the checksum of the rows read, is not the stored one."""
        if name not in self._sums:
            return
        if total % MODULUS != self._sums[name]:
            raise self._damage_error(f"{name} is not what was written")
        # Check each tensor once; the next job detects later changes.
        del self._sums[name]

    def read(self, name: str, first_row: int, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Read rows of a tensor from `first_row` on into `rows`, faster than through a map.

        The caller must `check` what it reads.
        """
        dtype, shape = DTYPES[self.dtype(name)], self.shape(name)
        if rows.dtype != dtype or rows.shape[1:] != shape[1:]:
            raise ValueError(f"{name}: got {rows.dtype}{rows.shape}, expected {dtype}{shape}")
        if not 0 <= first_row <= shape[0] - len(rows):
            raise ValueError(f"{name}: {len(rows)} rows from {first_row} on, of {shape[0]}")
        self._read_bytes(name, first_row * prod(shape[1:]) * dtype.itemsize, rows)
        return rows

    def _read_bytes(self, name: str, offset: int, rows: npt.NDArray[Any]) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self._start + self._entries[name]["data_offsets"][0] + offset)
                copied = file.readinto(rows.data) if rows.size else 0
        except OSError as error:
            raise VitscopeError(f"Cannot read {self.path}: {error.strerror}.") from error
        if copied != rows.nbytes:
            raise VitscopeError(f"{self.path} is damaged: it ends early; delete it and run again.")
