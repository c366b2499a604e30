"""Images in parquet files, in the layout of Hugging Face."""

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from vitscope.data.source import Sample, Source
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.errors import VitscopeError, nearest
from vitscope.files.images import decode_image
from vitscope.files.untrusted import bounded_memory, steps_in_bounded_memory
from vitscope.files.whole import sha256_of

SOURCE: dict[str, Any] = {
    "meaning": "a parquet file, or a folder of them, in the layout of Hugging Face data sets",
    "shared": ("path",),
    "keys": {
        "image": {
            "type": "string",
            "description": "Column of a parquet file that holds the images; guessed if left out.",
        },
        "label": {
            "type": "string",
            "description": "Column of a parquet file that holds the labels; guessed if left out.",
        },
    },
    "required": ("path",),
}

Integers = npt.NDArray[np.int64]

IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "fine_label")
ROWS_PER_READ = 64
# Images are already compressed: a file that expands by more than this factor holds none.
LARGEST_EXPANSION = 100
SHOWN = 20


class Parquet(Source):
    def __init__(self, source: Mapping[str, Any], split: str, file: Path) -> None:
        self._paths = sorted(file.glob("*.parquet")) if file.is_dir() else [file]
        if not self._paths:
            raise VitscopeError(f"{file} holds no parquet files: correct the path of the data set.")
        schema = _open_parquet(self._paths[0]).schema_arrow
        image, label = source.get("image"), source.get("label")
        self._image = self._find_column(schema, "images", (image,) if image else IMAGE_COLUMNS)
        self._label = self._find_column(schema, "labels", (label,) if label else LABEL_COLUMNS)
        # Hold one file at a time, since the footers of many take memory.
        self._counts = [self._count_rows(path, schema) for path in self._paths]
        try:
            features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
            self.classes = [str(name) for name in features[self._label]["names"]]
        except (KeyError, TypeError, ValueError, RecursionError):
            self.classes = []
        digests = [sha256_of(path) for path in self._paths]
        self.provenance = {
            "source": ", ".join(path.name for path in self._paths),
            "source_sha256": ", ".join(digests),
        }

    def __len__(self) -> int:
        return sum(self._counts)

    def _count_rows(self, path: Path, schema: pa.Schema) -> int:
        """Return how many rows a file has; refuse one that expands or has another schema."""
        opened = _open_parquet(path)
        if not opened.schema_arrow.equals(schema):
            raise VitscopeError(
                f"{path} has other columns than {self._paths[0].name}: give a folder of files "
                f"of one data set."
            )
        groups = map(opened.metadata.row_group, range(opened.num_row_groups))
        size = sum(group.total_byte_size for group in groups)
        if size > LARGEST_EXPANSION * path.stat().st_size:
            raise VitscopeError(
                f"{path} would expand to {size} bytes, which no encoded images do: do not use "
                f"it, and get the data set from where it was published."
            )
        return int(opened.metadata.num_rows)

    def _find_column(self, schema: pa.Schema, what: str, allowed: tuple[str, ...]) -> str:
        for name in allowed:
            if name in schema.names:
                return name
        raise VitscopeError(
            f"{self._paths[0]} has no column {' or '.join(allowed)} of {what}; it has "
            f"{', '.join(schema.names[:SHOWN])}.{nearest(allowed[0], schema.names[:SHOWN])}"
        )

    def samples(self, indices: Integers) -> Iterator[Sample]:
        """Yield the wanted images with their labels; decode no others."""
        first = 0
        for path, count in zip(self._paths, self._counts, strict=True):
            inside = indices[(indices >= first) & (indices < first + count)] - first
            yield from self._read_file(path, inside)
            first += count

    def _read_file(self, path: Path, rows: Integers) -> Iterator[Sample]:
        file, first = _open_parquet(path), 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            inside = rows[(rows >= first) & (rows < first + count)]
            if len(inside):
                for entries in steps_in_bounded_memory(
                    path, self._read_entries(path, file, group, inside, first)
                ):
                    yield from (self._decode_sample(entry, path) for entry in entries)
            first += count

    def _read_entries(
        self, path: Path, file: pq.ParquetFile, group: int, rows: Integers, first: int
    ) -> Iterator[list[dict[str, Any]]]:
        columns = [self._image, self._label]
        try:
            for batch in file.iter_batches(ROWS_PER_READ, row_groups=[group], columns=columns):
                inside = rows[(rows >= first) & (rows < first + len(batch))] - first
                yield batch.take(pa.array(inside)).to_pylist()
                first += len(batch)
        except MemoryError:
            raise
        except Exception as error:  # Damaged bytes may raise any exception.
            raise VitscopeError(f"{path} is a damaged parquet file: get it again.") from error

    def _decode_sample(self, entry: dict[str, Any], path: Path) -> Sample:
        image, label = entry[self._image], entry[self._label]
        data = image.get("bytes") if isinstance(image, dict) else image
        if not isinstance(data, bytes) or not (label is None or isinstance(label, int)):
            raise VitscopeError(
                f"{path} holds no encoded images in {self._image}.bytes with whole numbers in "
                f"{self._label}: give a file in the layout of Hugging Face."
            )
        name = f"{path}: an image of the column {self._image}"
        picture = decode_image(io.BytesIO(data), name)
        return Sample(picture, UNKNOWN_LABEL if label is None else label)


def _open_parquet(path: Path) -> pq.ParquetFile:
    try:
        with bounded_memory(path):
            file = pq.ParquetFile(path)
            # Reading the schema raises an error if it is damaged.
            _ = file.schema_arrow
    except VitscopeError:
        raise
    except Exception as error:  # Damaged bytes may raise any exception.
        raise VitscopeError(f"{path} is not a readable parquet file: get it again.") from error
    return file


open_split = Parquet
