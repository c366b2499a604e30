"""Tables of results: their columns, and how they are written and read.

Parquet's own checksums cover only pages: headers, counts and metadata may change unnoticed. So a
table has a seal, the CRC-32 of the rest of the file, between its pages and its footer, where other
readers do not look.
"""

import json
import os
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.errors import VitscopeError
from vitscope.files.whole import atomic_path

# Import these only to read or write a table, as many modules only declare tables.
if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

# For each column, the name of its type, such as "float64" or "list of float64", and a sentence
# that explains it.
Columns = dict[str, tuple[str, str]]

SEAL, SEAL_BYTES = b"vitscope", 12
# The metadata key that marks a table as sealed; tables that other programs wrote have no seal.
SEALED = "sealed"
WARNINGS = "warnings"
# The metadata key for the model that a file is about: its name and, after a comma, its snapshot.
OF = "of"
DESCRIPTION = "description"


@dataclass(frozen=True)
class Table:
    """A table's name and its columns, each with a type and a sentence that explains it."""

    name: str
    columns: Columns

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of the table, with the sentence of each column."""
        import pyarrow as pa

        return pa.schema(
            pa.field(column, _arrow_type(type_name), metadata={DESCRIPTION: sentence})
            for column, (type_name, sentence) in self.columns.items()
        )

    def write(
        self, frame: "pd.DataFrame", path: Path | str, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Write a frame, which must have exactly the documented columns."""
        data = self.to_bytes(frame, metadata)
        with atomic_path(path) as partial:
            partial.write_bytes(data)

    def to_bytes(
        self, frame: "pd.DataFrame", metadata: Mapping[str, str] | None = None, **layout: Any
    ) -> bytes:
        """Return the bytes of a frame's file; `layout` is passed to pyarrow's `write_table`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        # In one order, so that equal tables are equal bytes, whichever way they were made.
        facts = dict(sorted((metadata or {}).items())) | {"table": self.name, SEALED: "crc32"}
        written = pa.BufferOutputStream()
        pq.write_table(self._as_arrow(frame).replace_schema_metadata(facts), written, **layout)
        data: bytes = written.getvalue().to_pybytes()
        footer = _footer_start(data)
        return data[:footer] + SEAL + zlib.crc32(data).to_bytes(4, "little") + data[footer:]

    def _as_arrow(self, frame: "pd.DataFrame") -> "pa.Table":
        import pyarrow as pa

        schema = self.schema
        if set(frame.columns) != set(schema.names):
            raise ValueError(
                f"{self.name}: columns {sorted(frame.columns)}, not {sorted(schema.names)}"
            )
        return pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)

    def as_read(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Return a frame as it would be read after it was written."""
        read: pd.DataFrame = self._as_arrow(frame).to_pandas(use_threads=False)
        return read

    def read(self, path: Path | str) -> "pd.DataFrame":
        """Read the table, checking its columns and types."""
        return self.read_with_facts(path)[0]

    def read_with_facts(
        self, path: Path | str, data: "pa.Buffer | None" = None
    ) -> "tuple[pd.DataFrame, dict[str, str]]":
        """Read the table and its metadata, from `data` if the file is already in memory."""
        with _open_checked_table(path, data) as file:
            table, facts = file.read(use_threads=False), _read_facts(file)
        name = facts.get("table", self.name)
        if name != self.name or table.schema.remove_metadata() != self.schema:
            raise VitscopeError(
                f"{path} is not a {self.name} table of this version: delete it and run again."
            )
        return table.to_pandas(use_threads=False), facts


# The table in the file that several measures share if one pass over the images computes them all.
PARTS = Table(
    "parts",
    {
        "measure": ("string", "the measure"),
        "part": ("binary", "its part: the file of a table, sealed as any other"),
    },
)


def write_table_parts(parts: Mapping[str, bytes], path: Path | str) -> None:
    """Write `parts`, the bytes of each measure's table, to one file."""
    import pandas as pd

    frame = pd.DataFrame({"measure": [*parts], "part": [*parts.values()]})
    # Parts are large, already compressed, and read one at a time.
    layout: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    layout |= {"write_statistics": False, "row_group_size": 1}
    with atomic_path(path) as partial:
        partial.write_bytes(PARTS.to_bytes(frame, **layout))


def has_table_part(path: Path, measure: str) -> bool:
    """Tell whether a file of parts exists and holds the part of a measure."""
    if not path.is_file():
        return False
    with _open_unchecked_table(path) as file:
        return measure in _measures_in(file)


def read_table_part(
    table: Table, path: Path | str, measure: str
) -> "tuple[pd.DataFrame, dict[str, str]]":
    """Read a measure's table and metadata, from its own file or from a shared file of parts."""
    data = None
    with _open_unchecked_table(path) as file:
        if _read_facts(file).get("table") == PARTS.name:
            measures = _measures_in(file)
            if measure not in measures:
                raise VitscopeError(f"{path} has no part of {measure}: delete it and run again.")
            row = file.read_row_group(measures.index(measure), ["part"], use_threads=False)
            data = row["part"][0].as_buffer()
    return table.read_with_facts(path, data)


def _measures_in(parts: "pq.ParquetFile") -> list[str]:
    groups = range(parts.num_row_groups)
    return [parts.read_row_group(each, ["measure"])["measure"][0].as_py() for each in groups]


def _arrow_type(name: str) -> "pa.DataType":
    import pyarrow as pa

    item = name.removeprefix("list of ")
    return pa.type_for_alias(item) if item == name else pa.list_(_arrow_type(item))


def _footer_start(data: bytes | memoryview) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def _table_seal_holds(data: memoryview) -> bool | None:
    """Tell whether a parquet file's seal is right; None if it has no seal."""
    footer = _footer_start(data)
    start = footer - SEAL_BYTES
    if start < 0 or data[start : start + len(SEAL)] != SEAL:
        return None
    found = zlib.crc32(data[footer:], zlib.crc32(data[:start]))
    return found.to_bytes(4, "little") == data[footer - 4 : footer]


@contextmanager
def _open_checked_table(
    path: Path | str, data: "pa.Buffer | None" = None
) -> "Iterator[pq.ParquetFile]":
    """Open a table after reading all of it and checking its seal."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _explained_table_errors(path):
        data = pa.py_buffer(Path(path).read_bytes()) if data is None else data
        holds = _table_seal_holds(memoryview(data).cast("B"))
        if holds is not False:
            # Read from memory in this thread: if Arrow's own threads still read a Python file
            # when the interpreter exits, the process aborts.
            file = pq.ParquetFile(pa.BufferReader(data))
            holds = holds or SEALED.encode() not in (file.schema_arrow.metadata or {})
        if not holds:
            raise VitscopeError(
                f"{path} is damaged: it is not what was written; delete it and run again."
            )
        yield file


@contextmanager
def _open_unchecked_table(path: Path | str) -> "Iterator[pq.ParquetFile]":
    """Open a table to read only some of it, without checking its seal."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _explained_table_errors(path), pa.OSFile(str(path)) as file:
        yield pq.ParquetFile(file)


@contextmanager
def _explained_table_errors(path: Path | str) -> Iterator[None]:
    """Turn an error from reading a table, such as a column lost to damage, into one sentence."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError, LookupError) as error:
        # Arrow reports damaged pages as an OSError without an error number.
        if isinstance(error, OSError) and error.errno:
            reason = os.strerror(error.errno)
            raise VitscopeError(f"Cannot read the table {path}: {reason}.") from error
        raise VitscopeError(
            f"{path} is not a readable parquet table: delete it and run again."
        ) from error


def read_frame(path: Path | str) -> "pd.DataFrame":
    """Read a table that may have any columns."""
    with _open_checked_table(path) as file:
        frame: pd.DataFrame = file.read(use_threads=False).to_pandas(use_threads=False)
    return frame


def write_csv(frame: "pd.DataFrame", path: Path | str) -> None:
    """Write a frame as CSV, with all digits, lists as JSON, and pictures as Base64."""
    cells = frame.astype(object).map(_csv_cell)
    with atomic_path(path) as partial:
        cells.to_csv(partial, index=False, lineterminator="\n")


def _csv_cell(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return b64encode(cell).decode()
    # Put an apostrophe before the text, since a spreadsheet would run it as a formula.
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{cell}"
    return json.dumps(cell.tolist()) if getattr(cell, "ndim", 0) else cell


def read_metadata(path: Path | str) -> dict[str, str]:
    with _open_checked_table(path) as file:
        return _read_facts(file)


def _read_facts(file: "pq.ParquetFile") -> dict[str, str]:
    metadata = file.schema_arrow.metadata or {}
    facts = {key.decode(): value.decode() for key, value in metadata.items()}
    return {key: value for key, value in facts.items() if key != SEALED}


def check_file_model(path: Path | str, found: str | None, model: str) -> None:
    """Refuse a file of another model; `found` is what its metadata say, None without a file."""
    if found and found.partition(",")[0] != model:
        raise VitscopeError(f"{path} is of {found} and not of {model}: delete it and run again.")


def warning_metadata(warnings: Sequence[str]) -> dict[str, str]:
    """Return the metadata entry for reasons to doubt a table's values, or {} if there are none."""
    return {WARNINGS: json.dumps(warnings)} if warnings else {}


def add_warnings(metadata: Mapping[str, str], warnings: Sequence[str]) -> dict[str, str]:
    known = json.loads(metadata.get(WARNINGS, "[]"))
    return {**metadata, **warning_metadata([*dict.fromkeys([*known, *warnings])])}


def read_warnings(paths: Iterable[Path | str]) -> list[str]:
    """Return the reasons to doubt the values of these tables, each once."""
    found = (json.loads(read_metadata(path).get(WARNINGS, "[]")) for path in paths)
    return list(dict.fromkeys(reason for reasons in found for reason in reasons))
