"""Sources of images, by the `kind` that a study names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.data.source import Source
from vitscope.data.source_files import ARCHIVES, local_path
from vitscope.data.sources.cifar import Cifar, confirm
from vitscope.data.sources.folder import Folder, sample_photograph
from vitscope.data.sources.npz import Npz
from vitscope.data.sources.parquet import Parquet
from vitscope.data.sources.shapes32 import Shapes32
from vitscope.errors import VitscopeError


def open_source(source: Mapping[str, Any], split: str, file: Path | None = None) -> Source:
    """Open a split of a source; `file` is what was downloaded, if the source names no path."""
    kind = source["kind"]
    if kind == "shapes32":
        return Shapes32(split, source.get("seed", 0))
    if kind == "sample":
        return sample_photograph()
    path = file or local_path(source, split)
    if path is None:
        raise VitscopeError(
            f"A source of the kind {kind} needs the path of its files: give `path`."
        )
    if kind in ARCHIVES:
        if file is not None:
            confirm(source, file)
        return Cifar(kind, path, split)
    if kind == "parquet":
        return Parquet(path, source.get("image"), source.get("label"))
    return Npz(path) if kind == "npz" else Folder(path)
