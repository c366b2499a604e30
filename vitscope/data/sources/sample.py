"""The photograph that comes with matplotlib, to try a model without data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.data.source import ImageFiles
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.files.whole import sha256_of

SOURCE: dict[str, Any] = {"meaning": "one photograph, which matplotlib brings along"}


def open_split(source: Mapping[str, Any], split: str, file: Path | None) -> ImageFiles:
    from matplotlib.cbook import get_sample_data

    path = Path(get_sample_data("grace_hopper.jpg", asfileobj=False))
    provenance = {"source": f"{path.name} of matplotlib", "source_sha256": sha256_of(path)}
    return ImageFiles([(path, UNKNOWN_LABEL)], [], provenance)
