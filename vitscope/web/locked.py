"""Downloads of addresses that a study names: checked by its `sha256`, or else by its lock file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError
from vitscope.files.whole import sha256_of
from vitscope.progress import Say, say_on_stderr
from vitscope.web import downloads, lockfile
from vitscope.web.redaction import redact

# The `url` of a file, and its `sha256` where the study says it.
Entry = Mapping[str, Any]


def download(
    entry: Entry,
    path: Path,
    lock: Path,
    *,
    label: str,
    say: Say = say_on_stderr,
    **options: Any,
) -> None:
    """Download a file to `path`; without a `sha256` of its own, as the lock file knows it.

    The first download of an address writes it to the lock file, and says so.
    """
    url = entry["url"]
    known = None if "sha256" in entry else lockfile.find_entry(lock, redact(url))
    sha256 = known.sha256 if known else entry.get("sha256")
    said: dict[str, Any] = {"size": known.bytes, "said_by": str(lock)} if known else {}
    found = downloads.fetch(url, path, label=label, sha256=sha256, say=say, **said, **options)
    if sha256 is not None:
        return
    try:
        lockfile.record(lock, redact(url), lockfile.Entry(found, path.stat().st_size))
    except VitscopeError:
        path.unlink()
        raise
    say(f"{label}: wrote its SHA-256 {found} to {lock}; later downloads must match")


def confirm(entry: Entry, path: Path, lock: Path, *, label: str) -> str:
    """Return the SHA-256 of a download, and refuse it if it must have another.

    It may come from a cache, unseen by this machine: what the lock file does not know yet is
    written there, as of any first download.
    """
    url, found = redact(entry["url"]), lockfile.Entry(sha256_of(path), path.stat().st_size)
    known = None if "sha256" in entry else lockfile.find_entry(lock, url)
    expected = known.sha256 if known else entry.get("sha256")
    if expected is None:
        lockfile.record(lock, url, found)
    elif expected != found.sha256:
        said_by = lock if known else "the study"
        raise VitscopeError(
            f"{label}: {path} has the SHA-256 {found.sha256} where {said_by} says {expected}: it "
            f"is another file or a damaged one, so delete it, and if it is a link what it leads "
            f"to, and run again."
        )
    return found.sha256
