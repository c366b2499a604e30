"""Write files whole or not at all, and compute their digests."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vitscope.errors import VitscopeError


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path; if the block succeeds, its file replaces `path`."""
    target = Path(path)
    # The name is fixed, so that a run after a kill overwrites what was left.
    partial = target.with_name(f".{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(target)
    except OSError as error:
        # Explain only an error from writing, not one from a file that the block read.
        named = None if error.filename is None else Path(os.fsdecode(error.filename))
        if error.errno is None or named not in {None, partial, target, *target.parents}:
            raise
        raise VitscopeError(
            f"Cannot write {target} ({error.strerror}): free some space, or make its folder "
            f"writable."
        ) from error
    finally:
        # If the folder could not be made, no partial file exists, and unlinking fails.
        with suppress(OSError):
            partial.unlink()


def write_text(path: Path | str, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def copy_file(source: Path | str, target: Path | str) -> None:
    """Copy a file, whole or not at all."""
    with atomic_path(target) as partial:
        shutil.copyfile(source, partial)


def sha256_of(path: Path | str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def md5_of(path: Path | str) -> str:
    with Path(path).open("rb") as file:
        # Some publishers give only an MD5; it guards against damage, not against malice.
        md5 = hashlib.md5(usedforsecurity=False)
        return hashlib.file_digest(file, lambda: md5).hexdigest()
