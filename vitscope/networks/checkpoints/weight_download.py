"""Download the weights of a model, and remember what they hashed to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError
from vitscope.networks.checkpoints.weight_sources import address
from vitscope.progress import Say, say_on_stderr
from vitscope.web import downloads, lockfile
from vitscope.web.redaction import redact


def download(
    checkpoint: Mapping[str, Any],
    path: Path,
    lock: Path,
    *,
    label: str,
    say: Say = say_on_stderr,
    **options: Any,
) -> None:
    """Download a checkpoint to `path`; without a `sha256` of its own, as the lock file knows it.

    The first download of an address writes it to the lock file, and says so.
    """
    url = address(checkpoint)
    if "sha256" in checkpoint:
        downloads.fetch(url, path, label=label, sha256=checkpoint["sha256"], say=say, **options)
        return
    entry = lockfile.find_entry(lock, redact(url))
    if entry is not None:
        downloads.fetch(
            url,
            path,
            label=label,
            sha256=entry.sha256,
            size=entry.bytes,
            said_by=str(lock),
            say=say,
            **options,
        )
        return
    sha256 = downloads.fetch(url, path, label=label, say=say, **options)
    try:
        lockfile.record(lock, redact(url), lockfile.Entry(sha256, path.stat().st_size))
    except VitscopeError:
        path.unlink()
        raise
    say(f"{label}: wrote its SHA-256 {sha256} to {lock}; later downloads must match")
