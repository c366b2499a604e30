"""What a module of Python defines, and what each definition uses, read from its source.

Nothing is run. What changes no result is left out: comments, docstrings, layout, annotations of
functions, and imports for types alone.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from vitscope.files.imports import base_of, is_for_types, read_once

# A name that is used, and what is taken of it, or nothing: `np.mean` is ("np", "mean").
Use = tuple[str, str]
# A name that an import binds, the module, and what is imported from it, or nothing.
Imported = tuple[str, str, str]

_MODULE = re.compile(r"[a-z_]\w*(\.[a-z_]\w*)+(?<!\.py)")
# What a decorator of these does to a function has no effect elsewhere; others may register it.
_PURE = {"cache", "lru_cache", "cached_property", "contextmanager", "dataclass", "overload"}
_PURE |= {"inference_mode", "no_grad", "property", "staticmethod", "classmethod", "wraps"}


@dataclass(frozen=True)
class Definition:
    """A statement of a module: the names that it binds, and what running it may use.

    Without names, it is run wherever the module is imported. An import `for_types` binds a name
    that the module has in annotations of functions alone.
    """

    names: tuple[str, ...]
    digest: str
    uses: tuple[Use, ...] = ()
    imports: tuple[Imported, ...] = ()
    for_types: bool = False

    @property
    def is_import(self) -> bool:
        """Whether it does no more than bind a name of another module."""
        return bool(self.names) and not self.uses and len(self.imports) == 1


def definitions(source: bytes, package: str, path: str) -> list[Definition]:
    """Return what the source of a module of a package defines, in its order."""
    found = read_once("defined", source, package, path, partial(_read, package=package))
    return [_made(*each) for each in found]


def _made(
    names: list[str], digest: str, uses: list[Any], imports: list[Any], for_types: bool
) -> Definition:
    used, imported = tuple(map(tuple, uses)), tuple(map(tuple, imports))
    return Definition(tuple(names), digest, used, imported, for_types)


def _read(tree: ast.Module, package: str) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of a definition for each statement."""
    written = _names_in(tree)
    statements = [_Stripped().visit(statement) for statement in _at_import(tree.body)]
    of_types = written - set[str]().union(*map(_names_in, statements))
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for imported in _imports_of(statement, package):
                name = imported[0]
                yield [name], _digest(repr(imported)), [], [imported], name in of_types
        else:
            uses, imports = _used(statement, package)
            yield _names_bound(statement), _digest(ast.unparse(statement)), uses, imports, False


def _names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import of the module runs, but for texts alone."""
    for statement in body:
        texts = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not texts and not is_for_types(statement):
            yield statement


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


class _Stripped(ast.NodeTransformer):
    """Leave out docstrings, annotations of functions, and what is imported for types."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [*_at_import(body)] or [ast.Pass()]  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        return super().generic_visit(node)


def _names_bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement binds or changes; none if it is run in any case."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name] if all(map(_is_pure, statement.decorator_list)) else []
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return []
    return [
        node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
    ]


def _is_pure(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _PURE


def _imports_of(node: ast.Import | ast.ImportFrom, package: str) -> list[Imported]:
    if isinstance(node, ast.Import):
        return [
            (alias.asname or alias.name.partition(".")[0], alias.name, "") for alias in node.names
        ]
    base = base_of(node, package)
    return [(alias.asname or alias.name, base, alias.name) for alias in node.names] if base else []


def _used(statement: ast.AST, package: str) -> tuple[list[Use], list[Imported]]:
    """Return the names that a statement uses, and what is imported within it."""
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
            # A module that a text names may be imported by it.
            imports["", str(node.value), ""] = None
    return [*uses], [*imports]
