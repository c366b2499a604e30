"""A digest of the code that a job reaches, so that a workflow knows when to run it again.

It covers what `run` of the job's module uses of that module, and every module of vitscope that it
imports. How a job's values are found and what it takes changes no result, and is not part of it.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from vitscope.files import imports
from vitscope.jobs.job import Values, file_of

PACKAGE = Path(__file__).parents[1]


def _module_file(name: str) -> Path | None:
    """Return the file of a module of vitscope, or of a user's own, which is named by its path."""
    if name.endswith(".py"):
        return Path(name)
    parts = name.split(".")
    return imports.module_file(PACKAGE.joinpath(*parts[1:])) if parts[0] == PACKAGE.name else None


def code_digest(job: str, values: Values) -> str:
    """Digest the work of a job, and every module that it reaches."""
    modules = values.get("modules", ())
    named = modules.values() if isinstance(modules, dict) else modules
    return _digest(job, tuple(sorted(named)))


@cache
def reached(job: str, *modules: str) -> dict[str, Path]:
    """Return every module of vitscope that the work of a job, or one of `modules`, imports."""
    tree = ast.Module(body=[*_work_of(job)], type_ignores=[])
    imported = imports.imported_by(tree, f"vitscope.jobs.{job}")
    return imports.reached((*imported, *modules), _module_file)


@cache
def _digest(job: str, modules: tuple[str, ...]) -> str:
    found = reached(job, *modules)
    digest = hashlib.sha256("\n".join(map(ast.unparse, _work_of(job))).encode())
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + _content(found[name]) + b"\0")
    return digest.hexdigest()[:16]


@cache
def _content(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def _work_of(job: str) -> tuple[ast.stmt, ...]:
    """Return the statements of a job's module that `run` needs, in their order: what it names."""
    statements = ast.parse(file_of(job).read_bytes()).body
    bound = {name: each for each in statements for name in _names_bound(each)}
    wanted: set[ast.stmt] = set()
    pending = [bound["run"]]
    while pending:
        statement = pending.pop()
        if statement in wanted:
            continue
        wanted.add(statement)
        # Annotations are not evaluated to run it, but name what is imported for them.
        pending += [bound[name] for name in _names_used(statement) if name in bound]
    return tuple(_without_unused(each, wanted) for each in statements if each in wanted)


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (each.id for each in targets if isinstance(each, ast.Name))


def _names_used(statement: ast.stmt) -> Iterator[str]:
    ignored = {
        id(node)
        for each in ast.walk(statement)
        for annotation in _annotations(each)
        for node in ast.walk(annotation)
    }
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and id(node) not in ignored:
            yield node.id


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.FunctionDef) and node.returns:
        yield node.returns
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
        yield node.annotation


def _without_unused(statement: ast.stmt, wanted: set[ast.stmt]) -> ast.stmt:
    """Return an import of several names with those alone that the work uses."""
    if not isinstance(statement, ast.ImportFrom):
        return statement
    used = {name for each in wanted - {statement} for name in _names_used(each)}
    names = [alias for alias in statement.names if (alias.asname or alias.name) in used]
    return ast.ImportFrom(statement.module, names, statement.level)
