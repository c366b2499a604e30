"""Where the files of a source lie, which the rules ask before any job opens them."""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from vitscope.data.opening import declared, local_path
from vitscope.errors import VitscopeError, not_there


def archive_needed(source: Mapping[str, Any]) -> bool:
    """Tell whether the source has to be downloaded."""
    return declared(source["kind"]).archive is not None and "path" not in source


def there_already(source: Mapping[str, Any], split: str) -> bool:
    """Tell whether what a source names on this machine is there."""
    path = local_path(source, split)
    return path is None or path.exists()


def local_files(where: str, source: Mapping[str, Any], split: str, study: Path) -> list[str]:
    """Return the file or folder that a split is read from, if there is one, in a list."""
    path = local_path(source, split)
    return [] if path is None else [require_existing(f"{where}.path", path, study)]


def require_existing(where: str, path: Path, study: Path) -> str:
    """Return the path of a file or folder that the file of a study names."""
    if not path.exists():
        raise not_there(where, "file or folder", path, study)
    return str(path)


@cache
def listing_digest(path: Path) -> str | None:
    """Digest the names, sizes and dates of the files in a folder and its sub-folders.

    The date of the folder itself stays when a file is replaced in it, or added to a sub-folder.
    Hidden files do not count. The digest is None if the path is not a folder.
    """
    if not path.is_dir():
        return None
    try:
        # A sum does not depend on the order of the files, and needs no list of millions of them.
        lines = map(os.fsencode, _list_names(path, depth=2))
        digests = (blake2b(line, digest_size=16).digest() for line in lines)
        return f"{sum(int.from_bytes(each, 'big') for each in digests) % 2**128:032x}"
    except OSError as error:
        raise VitscopeError(
            f"{path} cannot be read ({error.strerror}, {error.filename}): make it readable."
        ) from error


def _list_names(folder: Path | str, depth: int, within: str = "") -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{within}{entry.name}"
            if entry.is_dir() and depth > 1:
                yield from _list_names(entry.path, depth - 1, f"{name}/")
            elif entry.is_file() and not entry.name.startswith("."):
                known = entry.stat()
                yield f"{name} {known.st_size} {known.st_mtime_ns}"
