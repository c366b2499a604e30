"""One image at an address on the web."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.data.source import ImageFiles
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.files.whole import sha256_of
from vitscope.web import redact

SOURCE: dict[str, Any] = {
    "meaning": "one image without a label, downloaded from its address",
    "shared": ("url", "sha256"),
    "required": ("url",),
}


def open_split(source: Mapping[str, Any], split: str, file: Path) -> ImageFiles:
    provenance = {"source": redact(source["url"]), "source_sha256": sha256_of(file)}
    return ImageFiles([(file, UNKNOWN_LABEL)], [], provenance)
