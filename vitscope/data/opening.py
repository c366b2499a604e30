"""Find and open sources of images: each kind is a module in sources/ (docs/data.md)."""

import ast
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vitscope.data import sources
from vitscope.errors import VitscopeError, nearest, not_there, quoted
from vitscope.files.untrusted import bounded_memory

if TYPE_CHECKING:
    from vitscope.data.source import Glance, Source


@dataclass(frozen=True)
class Declaration:
    """What a source declares about itself in its literal `SOURCE`.

    `keys` are the keys that a study may give the source besides `kind`, each with its JSON schema.
    `shared` are the keys that mean the same for all sources, such as `path` and `url`. `archive` is
    the official archive to download if a study names no path: see `archives.py`. If `glanced` is
    set, the module has a function `glance`, which checks the files when a study is loaded. `images`
    is the number of images in each split, if it is always the same.
    """

    meaning: str
    shared: tuple[str, ...] = ()
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    archive: dict[str, Any] | None = None
    glanced: bool = False
    images: dict[str, int] = field(default_factory=dict)


def source_kinds() -> list[str]:
    modules = pkgutil.iter_modules(sources.__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


@cache
def declared(kind: str) -> Declaration:
    """Read the declaration in a source's module without running the module."""
    kinds = source_kinds()
    if kind not in kinds:
        raise VitscopeError(
            f"There is no source '{kind}'; there are {', '.join(kinds)}.{nearest(kind, kinds)}"
        )
    (file,) = (found for path in sources.__path__ if (found := Path(path) / f"{kind}.py").is_file())
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "SOURCE" and node.value:
            return Declaration(**ast.literal_eval(node.value))
    raise VitscopeError(f"The source '{kind}' has no literal SOURCE in {file}; add one.")


def open_source(source: Mapping[str, Any], split: str, download: Path | None = None) -> "Source":
    """Open a split of a source, from its path or the `download`; check a downloaded archive."""
    declaration, module = declared(source["kind"]), _source_module(source["kind"])
    path = local_path(source, split) or download
    if declaration.archive and path and "path" not in source:
        from vitscope.data.archives import check_official_archive

        check_official_archive(declaration.archive, source, path)
    with bounded_memory(path) if path else nullcontext():
        opened: Source = module.open_split(source, split, path)
    return opened


def glance(source: Mapping[str, Any], split: str, most: int) -> "Glance | None":
    """Return the classes and number of images of a split, counted up to `most`; None if unknown."""
    path = local_path(source, split)
    if not declared(source["kind"]).glanced or path is None or not path.exists():
        return None
    seen: Glance = _source_module(source["kind"]).glance(path, most)
    return seen


def count_images(source: Mapping[str, Any], split: str) -> int | None:
    seen = glance(source, split, sys.maxsize)
    return seen.images if seen else declared(source["kind"]).images.get(split)


def _source_module(kind: str) -> ModuleType:
    return importlib.import_module(f"{sources.__name__}.{kind}")


def local_path(source: Mapping[str, Any], split: str) -> Path | None:
    """Return the file or folder of a split, with `{split}` filled in; None if no path is given."""
    if "path" not in source:
        return None
    return Path(source["path"].replace("{split}", split)).expanduser()


def archive_needed(source: Mapping[str, Any]) -> bool:
    return declared(source["kind"]).archive is not None and "path" not in source


def local_path_exists(source: Mapping[str, Any], split: str) -> bool:
    """Return whether a split's local path exists; True for a source without a path."""
    path = local_path(source, split)
    return path is None or path.exists()


def local_files(where: str, source: Mapping[str, Any], split: str, study: Path) -> list[str]:
    path = local_path(source, split)
    return [] if path is None else [require_existing(f"{where}.path", path, study)]


def require_existing(where: str, path: Path, study: Path) -> str:
    if not path.exists():
        raise not_there(where, "file or folder", path, study)
    return str(path)


@cache
def listing_digest(path: Path) -> str | None:
    """Return a digest of the names, sizes and dates of the visible files in a folder.

    Files in its sub-folders count, but no deeper ones. None if `path` is no folder.
    """
    if not path.is_dir():
        return None
    try:
        # Add the digests: a sum needs no order, and so no list of millions of files.
        lines = map(os.fsencode, _describe_files(path, depth=2))
        digests = (blake2b(line, digest_size=16).digest() for line in lines)
        return f"{sum(int.from_bytes(each, 'big') for each in digests) % 2**128:032x}"
    except OSError as error:
        raise VitscopeError(
            f"{path} cannot be read ({error.strerror}, {error.filename}): make it readable."
        ) from error


def _describe_files(folder: Path | str, depth: int, within: str = "") -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{within}{entry.name}"
            if entry.is_dir() and depth > 1:
                yield from _describe_files(entry.path, depth - 1, f"{name}/")
            elif entry.is_file() and not entry.name.startswith("."):
                known = entry.stat()
                yield f"{name} {known.st_size} {known.st_mtime_ns}"


def check_image_count(where: str, wanted: int | None, there: int) -> None:
    if there == 0:
        raise VitscopeError(f"{where}: the source holds no images: correct its path.")
    if wanted is not None and wanted > there:
        raise VitscopeError(
            f"{where}: the study asks for {wanted} images and the source has {there}: "
            f"write `images: {there}`, or fewer."
        )


def check_measured(where: str, wanted: int, there: int, split: str = "the split") -> None:
    if wanted > there:
        raise VitscopeError(
            f"{where}: the study measures {wanted} images and {split} has {there}: "
            f"write `images: {there}` in the split, or lower analysis.images."
        )


def check_scaling(where: str, values: Sequence[float]) -> None:
    """Refuse a mean or deviation that is meant for pixels from 0 to 255."""
    if not all(abs(value) <= 1 for value in values):
        raise VitscopeError(
            f"{where}: found {quoted([*values])}, allowed: numbers up to 1, as pixels are from 0 "
            f"to 1: divide by 255, mean and std alike."
        )
