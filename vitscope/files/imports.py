"""What modules of Python import, read from their sources: nothing is run."""

import ast
import atexit
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text


def reached(modules: Iterable[str], file_of: Callable[[str], Path | None]) -> dict[str, Path]:
    """Return the files of modules, and of all that they import and `file_of` finds.

    Modules that are imported by a computed name are not seen in the source.
    """
    found: dict[str, Path] = {}
    pending = list(modules)
    while pending:
        for name in with_parents(pending.pop()):
            path = file_of(name)
            if path and name not in found:
                found[name] = path
                pending.extend(imported(path, name))
    return found


def imported(path: Path, module: str) -> tuple[str, ...]:
    """Return what the source of a module may import: modules, and names that may be modules."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    find = partial(imported_by, package=package)
    return tuple(read_once("imports", path.read_bytes(), package, str(path), find))


# What was found in sources, by digests of them: parsing is most of the cost of a digest.
_found: dict[str, list[Any]] = {}


def read_once(
    what: str, source: bytes, package: str, path: str, find: Callable[[ast.Module], Iterable[Any]]
) -> list[Any]:
    """Return what is found in a source, which is parsed once; it is what JSON can hold."""
    key = sha256(f"{what}\0{package}\0".encode() + source).hexdigest()
    if key not in _found:
        _found[key] = [*find(ast.parse(source, path))]
    return _found[key]


def remember(file: Path) -> None:
    """Know what was found before, by a file, and write what this process finds besides at its end.

    A file that is damaged or may not be written costs the time that it would have saved.
    """
    with suppress(OSError, ValueError, TypeError, AttributeError):
        known = json.loads(file.read_text(encoding="utf-8"))
        _found.update({key: list(each) for key, each in known.items()})
    atexit.register(_write, file, len(_found))


def _write(file: Path, known: int) -> None:
    if len(_found) > known:
        with suppress(OSError, VitscopeError):
            write_text(file, json.dumps(_found))


def imported_by(tree: ast.AST, package: str) -> tuple[str, ...]:
    """Return what code of a package may import: modules, and names that may be modules."""
    names: list[str] = []
    for node in _run(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (base := base_of(node, package)):
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(names)


def base_of(node: ast.ImportFrom, package: str) -> str | None:
    """Return what names are imported from; None where nothing is above, as Python itself says."""
    try:
        return resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:
        return None


def module_file(stem: Path) -> Path | None:
    """Return the file of a module whose path without suffix is known: a package's, or its own."""
    for path in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")):
        if path.is_file():
            return path
    return None


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a module that are run: imports for types alone change no result."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if is_for_types(node):
            continue
        yield node
        # Statements alone hold imports; to look through all expressions takes ten times as long.
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, field, None)
            pending += inner if isinstance(inner, list) else ()


def is_for_types(node: ast.AST) -> bool:
    """Tell whether a statement is run by type checkers alone."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]
