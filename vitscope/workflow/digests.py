"""A digest of the code that a script reaches, so that a workflow knows when to run it again."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def _module_file(name: str) -> Path | None:
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return None
    stem = PACKAGE.joinpath(*parts[1:])
    for path in (stem / "__init__.py", stem.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is run of a module: what is imported for types alone changes no result."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _run(node)


# Parsing is most of the cost of a digest, and the modules that most scripts share are parsed once.
@cache
def _imported(path: Path, module: str) -> tuple[str, ...]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    for node in _run(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _reached(modules: Iterable[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    pending = list(modules)
    while pending:
        for name in _with_parents(pending.pop()):
            path = _module_file(name)
            if path and name not in found:
                found[name] = path
                pending.extend(_imported(path, name))
    return found


@cache
def reached(script: Path, *modules: str) -> dict[str, Path]:
    """Return every module of vitscope that a script, or one of `modules`, imports, and its file.

    Modules that are imported by a computed name are not seen in the source: name them.
    """
    return _reached((*_imported(script, script.stem), *modules))


@cache
def code_digest(script: Path, *modules: str) -> str:
    """Digest a script and every module that it reaches, as `reached` finds them."""
    found = reached(script, *modules)
    digest = hashlib.sha256(script.read_bytes())
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name].read_bytes() + b"\0")
    return digest.hexdigest()[:16]
