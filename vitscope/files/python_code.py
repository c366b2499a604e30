"""Find what Python modules import and define, by reading their sources without running them.

Definitions leave out what changes no result: comments, docstrings, layout, annotations of
functions, and imports for types alone.
"""

import ast
import atexit
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text

# A name in use, and the attribute taken from it or "": `np.mean` is ("np", "mean").
Use = tuple[str, str]
# The name that an import binds, the module, and the name imported from it or "".
Imported = tuple[str, str, str]
_MODULE = re.compile(r"[a-z_]\w*(\.[a-z_]\w*)+(?<!\.py)")
# Decorators without side effects; others may register the function somewhere.
_PURE = {"cache", "lru_cache", "cached_property", "contextmanager", "dataclass", "overload"}
_PURE |= {"inference_mode", "no_grad", "property", "staticmethod", "classmethod", "wraps"}
# pytest calls a fixture where a test names it.
_PURE |= {"fixture"}


class Cache(dict[str, Any]):
    """Results by the digest of what they were computed from; `keep_in` keeps them between runs."""

    def keep_in(self, file: Path, prefix: str = "") -> None:
        """Load the results in a file, if it is intact; save new ones when Python exits.

        Leave out results whose keys do not start with `prefix`.
        """
        loaded = dict[str, Any]()
        with suppress(OSError, ValueError, TypeError):
            loaded = {**json.loads(file.read_text(encoding="utf-8"))}
            self.update({key: each for key, each in loaded.items() if key.startswith(prefix)})

        @atexit.register
        def save_new() -> None:
            if not self.keys() <= loaded.keys():
                with suppress(OSError, VitscopeError):
                    write_text(file, json.dumps(self))


# The definitions in each source, by its digest, since parsing a source twice would be slow.
found_definitions = Cache()


def reached_files(modules: Iterable[str], file_of: Callable[[str], Path | None]) -> dict[str, Path]:
    """Return the files of modules and of all that they import, except imports by computed name."""
    found: dict[str, Path] = {}
    pending = list(modules)
    while pending:
        for name in module_and_parents(pending.pop()):
            path = file_of(name)
            if path and name not in found:
                found[name] = path
                pending.extend(imported_modules(path, name))
    return found


def imported_modules(path: Path, module: str) -> Iterator[str]:
    """Yield the modules that a module's source imports, and imported names that may be modules."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for definition in definitions(path.read_bytes(), package, str(path)):
        for alias, where, what in definition.imports:
            # Skip entries without an alias: strings that may name a module, but are no imports.
            if alias:
                yield from (where, f"{where}.{what}") if what else (where,)


def module_file(stem: Path) -> Path | None:
    """Return the file of the module at a path without suffix: `__init__.py` for a package."""
    for path in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")):
        if path.is_file():
            return path
    return None


def sources_below(folder: Path) -> list[Path]:
    """Return the Python files below a folder, without links to no file, as editors make to lock."""
    return sorted(filter(Path.is_file, folder.rglob("*.py")))


@cache
def module_and_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


@dataclass(frozen=True)
class Definition:
    """A statement of a module: the names that it binds, and what it uses and imports when run.

    A statement without names runs whenever the module is imported. An import `for_types` binds a
    name that the module uses only in annotations of functions.
    """

    names: tuple[str, ...]
    digest: str
    uses: tuple[Use, ...] = ()
    imports: tuple[Imported, ...] = ()
    for_types: bool = False

    @property
    def is_import(self) -> bool:
        """Whether the statement only binds a name from another module."""
        return bool(self.names) and not self.uses and len(self.imports) == 1


def definitions(source: bytes, package: str, path: str) -> list[Definition]:
    """Return the definitions in a source, in order; `package` resolves its relative imports."""
    key = sha256(f"definitions\0{package}\0".encode() + source).hexdigest()
    if key not in found_definitions:
        found_definitions[key] = [*_read_definitions(ast.parse(source, path), package)]
    return [
        Definition(tuple(names), digest, (*map(tuple, uses),), (*map(tuple, imports),), for_types)
        for names, digest, uses, imports, for_types in found_definitions[key]
    ]


def _read_definitions(tree: ast.Module, package: str) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of a `Definition` for each statement."""
    written = _names_used_in(tree)
    statements = [_Stripped().visit(statement) for statement in _statements_run(tree.body)]
    of_types = written - set[str]().union(*map(_names_used_in, statements))
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for imported in _imports_of(statement, package):
                name = imported[0]
                yield [name], _hash_text(repr(imported)), [], [imported], name in of_types
        else:
            uses, imports = _used_and_imported(statement, package)
            yield _names_bound(statement), _hash_text(ast.unparse(statement)), uses, imports, False


def _names_used_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _statements_run(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that importing the module runs, except bare strings."""
    for statement in body:
        texts = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        of_types = isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
        if not texts and not of_types:
            yield statement


def _hash_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


class _Stripped(ast.NodeTransformer):
    """Removes docstrings, annotations of functions, and imports for types."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [*_statements_run(body)] or [ast.Pass()]  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        return super().generic_visit(node)


def _names_bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement binds or changes; none if it must always run."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name] if all(map(_is_pure_decorator, statement.decorator_list)) else []
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return []
    nodes = (node for target in targets for node in ast.walk(target))
    return [node.id for node in nodes if isinstance(node, ast.Name)]


def _is_pure_decorator(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _PURE


def _imports_of(node: ast.Import | ast.ImportFrom, package: str) -> list[Imported]:
    if isinstance(node, ast.Import):
        return [
            (alias.asname or alias.name.partition(".")[0], alias.name, "") for alias in node.names
        ]
    try:
        base = resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:  # The relative import leads above the top package.
        return []
    return [(alias.asname or alias.name, base, alias.name) for alias in node.names]


def _used_and_imported(statement: ast.AST, package: str) -> tuple[list[Use], list[Imported]]:
    uses: dict[Use, None] = {}
    imports: dict[Imported, None] = {}
    whole = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= dict.fromkeys(_imports_of(node, package))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses[node.value.id, node.attr] = None
        elif isinstance(node, ast.Name) and id(node) not in whole:
            uses[node.id, ""] = None
        elif isinstance(node, ast.Constant) and _MODULE.fullmatch(str(node.value)):
            # A string that names a module may serve to import it.
            imports["", str(node.value), ""] = None
    return [*uses], [*imports]
