"""The kinds of sources that there are, and a split of one opened by the name of its kind.

Every module of vitscope.data.sources whose name has no leading underscore is a kind. It declares
itself in a literal `SOURCE`, and has a function `open_split`. docs/data.md shows how to add one.
"""

import ast
import importlib
import pkgutil
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vitscope.data import sources
from vitscope.errors import VitscopeError, nearest
from vitscope.files.bounded import bounded_memory

if TYPE_CHECKING:
    from vitscope.data.source import Glance, Source


@dataclass(frozen=True)
class Declaration:
    """What a source says of itself in its literal `SOURCE`.

    `keys` are the keys that it takes in a study beside `kind`, each with its JSON schema, and
    `shared` the keys that mean the same for all sources: `path`, `url` or both. `archive` is the
    official archive that is downloaded where a study names no path: see `archives.py`. Where
    `glanced` is set, the module has a function `glance`, by which a study is checked as it is read.
    `images` are how many there are in each split, where that is the same for everybody.
    """

    meaning: str
    shared: tuple[str, ...] = ()
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    archive: dict[str, Any] | None = None
    glanced: bool = False
    images: dict[str, int] = field(default_factory=dict)


def names() -> list[str]:
    """Return the kinds of sources, without importing any."""
    modules = pkgutil.iter_modules(sources.__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


@cache
def declared(kind: str) -> Declaration:
    """Return what a source declares, read from its module without running it."""
    _check(kind)
    (file,) = (found for path in sources.__path__ if (found := Path(path) / f"{kind}.py").is_file())
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "SOURCE" and node.value:
            return Declaration(**ast.literal_eval(node.value))
    raise VitscopeError(f"The source '{kind}' has no literal SOURCE in {file}; add one.")


def open_source(source: Mapping[str, Any], split: str, download: Path | None = None) -> "Source":
    """Open a split of a source; `download` is its archive, if the study names no path."""
    _check(source["kind"])
    module, path = _module(source["kind"]), local_path(source, split) or download
    with bounded_memory(path) if path else nullcontext():
        opened: Source = module.open_split(source, split, path)
    return opened


def glance(source: Mapping[str, Any], split: str, most: int) -> "Glance | None":
    """Return what is seen of a split at a glance, of whose images no more than `most` are counted.

    None where nothing is seen: what a path holds may be put there later.
    """
    path = local_path(source, split)
    if not declared(source["kind"]).glanced or path is None or not path.exists():
        return None
    seen: Glance = _module(source["kind"]).glance(path, most)
    return seen


def count_images(source: Mapping[str, Any], split: str) -> int | None:
    """Return how many images a split of a source has, if that is known before it is opened."""
    seen = glance(source, split, sys.maxsize)
    return seen.images if seen else declared(source["kind"]).images.get(split)


def _module(kind: str) -> ModuleType:
    return importlib.import_module(f"{sources.__name__}.{kind}")


def local_path(source: Mapping[str, Any], split: str) -> Path | None:
    """Return the file or folder of a split; `{split}` in a path stands for the split's name."""
    if "path" not in source:
        return None
    return Path(source["path"].replace("{split}", split)).expanduser()


def _check(kind: str) -> None:
    if kind not in names():
        raise VitscopeError(
            f"There is no source '{kind}'; there are {', '.join(names())}.{nearest(kind, names())}"
        )
