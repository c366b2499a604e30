"""Where the files of a source lie; known without opening them."""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError

# Sources that are official archives: downloaded unless the study gives a path.
ARCHIVES = ("cifar10", "cifar100")


def archive_needed(source: Mapping[str, Any]) -> bool:
    """Tell whether the source has to be downloaded."""
    return source["kind"] in ARCHIVES and "path" not in source


def local_path(source: Mapping[str, Any], split: str) -> Path | None:
    """Return the file or folder of a split; `{split}` in a path stands for the split's name."""
    if "path" not in source:
        return None
    return Path(source["path"].replace("{split}", split)).expanduser()


def local_files(where: str, source: Mapping[str, Any], split: str) -> list[str]:
    """Return the file or folder that a split is read from, as far as there is one."""
    path = local_path(source, split)
    if path is None:
        return []
    return [existing(f"{where}.path", path)]


def existing(where: str, path: Path) -> str:
    """Return the path of a file or folder that a study names."""
    if not path.exists():
        raise VitscopeError(
            f"{where}: there is no file or folder {path}: put the data there or correct the path."
        )
    return str(path)


@cache
def listing_digest(path: Path) -> str | None:
    """Digest the names, sizes and dates of the files in a folder and its sub-folders.

    The date of a folder tells nothing of files that are replaced, nor of those in sub-folders.
    Hidden files do not count. What is no folder has none.
    """
    if not path.is_dir():
        return None
    try:
        # Added up: in any order, and without keeping a list of what may be millions.
        return f"{sum(map(_hash, _listed(path, depth=2))) % 2**128:032x}"
    except OSError as error:
        raise VitscopeError(
            f"{path} cannot be read ({error.strerror}, {error.filename}): make it readable."
        ) from error


def _listed(folder: Path | str, depth: int, within: str = "") -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{within}{entry.name}"
            if entry.is_dir() and depth > 1:
                yield from _listed(entry.path, depth - 1, f"{name}/")
            elif entry.is_file() and not entry.name.startswith("."):
                known = entry.stat()
                yield f"{name} {known.st_size} {known.st_mtime_ns}"


def _hash(line: str) -> int:
    return int.from_bytes(blake2b(os.fsencode(line), digest_size=16).digest(), "big")
