"""The lock file of a study, which records the digest of each file at its first download."""

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from vitscope.errors import VitscopeError
from vitscope.files.strict_yaml import parse_yaml
from vitscope.files.whole import sha256_of
from vitscope.progress import Say, say_on_stderr
from vitscope.web import downloads, redact

HEADER = """\
# What the downloads of this study hashed to when they were first made. Later ones must match.
# To accept a file that has changed at its source, delete its entry.
"""
# The `url` of a file, and its `sha256` if the study states it.
Source = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    sha256: str
    bytes: int


def find_lock_entry(lock: Path, url: str) -> Entry | None:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return _parse_lock_entries(lock, file.read()).get(url)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise VitscopeError(
            f"Cannot read {lock} ({error.strerror}): make it readable, where files can be locked."
        ) from error


def record_digest(lock: Path, url: str, entry: Entry) -> None:
    """Add an entry to the lock file; refuse it if it differs from an existing one."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            there = _parse_lock_entries(lock, text).get(url)
            if there is None:
                _append_lock_entry(file, text, url, entry)
    except OSError as error:
        raise VitscopeError(
            f"Cannot write {lock} ({error.strerror}): make it writable, where files can be "
            f"locked, or give the study the "
            f"sha256 of {url}, which is {entry.sha256}."
        ) from error
    if there is not None and there != entry:
        raise VitscopeError(
            f"{url} has the SHA-256 {entry.sha256} where {lock} says {there.sha256}: it is "
            f"changing at its source, so download it again."
        )


def _append_lock_entry(file: BinaryIO, before: bytes, url: str, entry: Entry) -> None:
    """Append an entry to the locked file in one write, so that a kill damages no older entry."""
    text = yaml.safe_dump({url: {"sha256": entry.sha256, "bytes": entry.bytes}}, sort_keys=False)
    if not before:
        text = HEADER + text
    elif not before.endswith(b"\n"):
        text = "\n" + text
    data = text.encode()
    try:
        written = file.write(data)
        if written != len(data):
            raise OSError("the disk is full")
    except OSError:
        os.truncate(file.fileno(), len(before))
        raise


def _parse_lock_entries(lock: Path, text: bytes) -> dict[str, Entry]:
    try:
        loaded = parse_yaml(text.decode()) or {}
        return {url: Entry(str(e["sha256"]), int(e["bytes"])) for url, e in loaded.items()}
    except (yaml.YAMLError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        raise VitscopeError(
            f"{lock} is damaged: restore it, or delete it to record all digests anew."
        ) from None


def download_with_lock(
    entry: Source, path: Path, lock: Path, *, label: str, say: Say = say_on_stderr, **options: Any
) -> None:
    """Download a file to `path`; check it against the entry's `sha256` or the lock file."""
    url = entry["url"]
    known = None if "sha256" in entry else find_lock_entry(lock, redact(url))
    sha256 = known.sha256 if known else entry.get("sha256")
    said: dict[str, Any] = {"size": known.bytes, "said_by": str(lock)} if known else {}
    found = downloads.fetch(url, path, label=label, sha256=sha256, say=say, **said, **options)
    if sha256 is not None:
        return
    try:
        record_digest(lock, redact(url), Entry(found, path.stat().st_size))
    except VitscopeError:
        path.unlink()
        raise
    say(f"{label}: wrote its SHA-256 {found} to {lock}; later downloads must match")


def confirm_by_lock(entry: Source, path: Path, lock: Path, *, label: str) -> str:
    """Return the SHA-256 of a download, which a cache may supply; refuse an unexpected one."""
    url, found = redact(entry["url"]), Entry(sha256_of(path), path.stat().st_size)
    known = None if "sha256" in entry else find_lock_entry(lock, url)
    expected = known.sha256 if known else entry.get("sha256")
    if expected is None:
        record_digest(lock, url, found)
    elif expected != found.sha256:
        said_by = lock if known else "the study"
        raise VitscopeError(
            f"{label}: {path} has the SHA-256 {found.sha256} where {said_by} says {expected}: it "
            f"is another file or a damaged one, so delete it, and if it is a link what it leads "
            f"to, and run again."
        )
    return found.sha256
