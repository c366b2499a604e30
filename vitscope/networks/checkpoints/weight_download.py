"""Download the weights of a model, and remember what they hashed to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.networks.checkpoints.weight_sources import address
from vitscope.web import lockfile


def download(checkpoint: Mapping[str, Any], path: Path, lock: Path, **options: Any) -> None:
    """Download a checkpoint to `path`, as `locked.download` does."""
    lockfile.download({**checkpoint, "url": address(checkpoint)}, path, lock, **options)
