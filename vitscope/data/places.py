"""Where the files of a source lie; known without opening them."""

from collections.abc import Mapping
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
