from pathlib import Path
from typing import Any

import numpy as np

from vitscope.data.opening import open_source
from vitscope.data.source import Source


def open_path(kind: str, path: Path, split: str = "test", **keys: Any) -> Source:
    return open_source({"kind": kind, "path": str(path), **keys}, split)


def read_all(source: Source) -> None:
    """Read the first hundred images of a source."""
    for _ in source.samples(np.arange(min(len(source), 100))):
        pass
