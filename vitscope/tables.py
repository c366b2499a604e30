"""The tables: their columns, and how they are written and read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vitscope.errors import VitscopeError
from vitscope.files import atomic_path

Columns = dict[str, tuple[pa.DataType, str]]

_CUT_POINT: Columns = {
    "model": (pa.string(), "model, as the study names it"),
    "index": (pa.int32(), "position of the cut point, 0 for the stem"),
    "name": (pa.string(), "name of the cut point in the model"),
    "kind": (pa.string(), "stem, conv, msa, mlp, pool or head"),
    "stage": (pa.int32(), "stage of the model, 0 for the stem"),
    "depth": (pa.float64(), "normalized depth: index over the largest index"),
    "channels": (pa.int32(), "channels of the feature map"),
    "height": (pa.int32(), "height of the feature map"),
    "width": (pa.int32(), "width of the feature map"),
}

TABLES: dict[str, Columns] = {
    "blocks": {
        **_CUT_POINT,
        "parameters": (pa.int64(), "parameters between this cut point and the one before"),
    },
    "variance_per_image": {
        "index": (pa.int32(), "position of the cut point, 0 for the stem"),
        "image": (pa.int64(), "position of the image among those that are measured"),
        "variance": (pa.float64(), "variance over space, mean over channels"),
    },
    "feature_variance": {
        **_CUT_POINT,
        "images": (pa.int64(), "number of images"),
        "variance": (pa.float64(), "variance over space, mean over channels and images"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval over images"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval over images"),
    },
    "training_history": {
        "epoch": (pa.int32(), "epochs done"),
        "loss": (pa.float64(), "mean training loss of the epoch, on augmented images"),
        "learning_rate": (pa.float64(), "learning rate of the last step"),
        "test_accuracy": (pa.float64(), "share of test images whose class is found"),
    },
    "claims": {
        "figure": (pa.string(), "figure that the claim is about"),
        "model": (pa.string(), "model, as the study names it"),
        "claim": (pa.string(), "name of the claim"),
        "statement": (pa.string(), "the claim in words"),
        "published_series": (pa.string(), "published curve that is counted beside; null if none"),
        "published_count": (pa.int32(), "blocks of the published curve that do as claimed"),
        "published_total": (pa.int32(), "blocks of the published curve that the claim is about"),
        "measured_count": (pa.int32(), "blocks that do as claimed"),
        "measured_total": (pa.int32(), "blocks that the claim is about"),
        "share": (pa.float64(), "measured_count over measured_total"),
        "holds": (pa.bool_(), "whether more than half of the blocks do as claimed"),
    },
    "agreement": {
        "figure": (pa.string(), "figure that shows both curves"),
        "model": (pa.string(), "model, as the study names it"),
        "published_series": (pa.string(), "published curve of the same checkpoint"),
        "published_points": (pa.int32(), "points of the published curve"),
        "measured_points": (pa.int32(), "points of the measured curve"),
        "rank_correlation": (pa.float64(), "Spearman's, at the published depths"),
        "normalized_rmse": (pa.float64(), "root mean square difference over the published range"),
    },
}


def schema_of(name: str) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema([pa.field(column, kind) for column, (kind, _) in TABLES[name].items()])


def write_table(
    name: str, frame: pd.DataFrame, path: Path | str, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a frame as the table `name`; its columns must be exactly the documented ones."""
    schema = schema_of(name)
    if set(frame.columns) != set(schema.names):
        raise ValueError(f"{name}: columns {sorted(frame.columns)}, not {sorted(schema.names)}")
    table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
    with atomic_path(path) as partial:
        pq.write_table(table.replace_schema_metadata({**(metadata or {}), "table": name}), partial)


@contextmanager
def _opened(path: Path | str) -> Iterator[pq.ParquetFile]:
    try:
        # From memory and in this thread: Arrow's own threads, when they read from a file of Python,
        # may still be at it when the interpreter ends, and abort it.
        yield pq.ParquetFile(pa.BufferReader(Path(path).read_bytes()))
    except (OSError, pa.ArrowException) as error:
        # Arrow tells of damaged pages with an OSError that has no number.
        if isinstance(error, OSError) and error.strerror:
            raise VitscopeError(f"Cannot read the table {path}: {error.strerror}.") from error
        raise VitscopeError(
            f"{path} is not a readable parquet table: delete it and run again."
        ) from error


def read_table(name: str, path: Path | str) -> pd.DataFrame:
    """Read the table `name`, checking its columns and types."""
    with _opened(path) as file:
        table = file.read(use_threads=False)
    if table.schema.remove_metadata() != schema_of(name):
        raise VitscopeError(
            f"{path} is not a {name} table of this version: delete it and run again."
        )
    frame: pd.DataFrame = table.to_pandas(use_threads=False)
    return frame


def read_metadata(path: Path | str) -> dict[str, str]:
    """Return the text that was written with a table."""
    with _opened(path) as file:
        metadata = file.schema_arrow.metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}
