"""Write a file whole or not at all, and tell what a file holds."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vitscope.errors import VitscopeError


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place only if the block succeeds.

    The temporary name is fixed, so that a run after a kill overwrites what the kill left.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise VitscopeError(f"Cannot write {target}: {error.strerror or error}.") from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_text(path: Path | str, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def copy_file(source: Path | str, target: Path | str) -> None:
    """Copy a file, whole or not at all."""
    with atomic_path(target) as partial:
        shutil.copyfile(source, partial)


def sha256_of(path: Path | str) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_size(path: Path | str) -> int:
    """Return the size of a file in bytes."""
    return os.stat(path).st_size
