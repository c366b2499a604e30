"""A digest of the code that a job reaches, so that a workflow knows when to run it again.

It covers what `run` of the job's module uses of that module, and every module of vitscope that it
imports. Of the modules of jobs that is what is named of each, and no more: how the values of a job
are found and what it takes changes no result.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from vitscope.files import imports
from vitscope.jobs.job import HERE as JOBS
from vitscope.jobs.job import Values

PACKAGE = Path(__file__).parents[1]
OF_JOBS = "vitscope.jobs"

# By their module, their place in it, and the name that they are used by.
Statements = dict[tuple[str, int, str], ast.stmt]


@cache
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
    return imports.reached((*_imported_by(job), *modules), _module_file)


@cache
def _digest(job: str, modules: tuple[str, ...]) -> str:
    found = reached(job, *modules)
    digest = hashlib.sha256(_text_of(job).encode())
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + _content(found[name]) + b"\0")
    return digest.hexdigest()[:16]


@cache
def _content(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def _text_of(job: str) -> str:
    """Return the work of a job as text, without what changes nothing of it."""
    work = _work_of(job)
    return "\n".join(ast.unparse(work[place]) for place in sorted(work))


@cache
def _imported_by(job: str) -> tuple[str, ...]:
    """Return what the work of a job imports; of the modules of jobs, what is used of them does."""
    tree = ast.Module(body=[*_work_of(job).values()], type_ignores=[])
    names = imports.imported_by(tree, OF_JOBS)
    return tuple(name for name in names if not name.startswith(OF_JOBS))


@cache
def _work_of(job: str) -> Statements:
    """Return the statements that the work of a job consists of."""
    found: Statements = {}
    pending = [(job, "run")]
    while pending:
        module, name = pending.pop()
        for number, statement in enumerate(_statements(module)):
            if name in _names_bound(statement) and (module, number, name) not in found:
                found[module, number, name] = used = _with_one_name(statement, name)
                pending += [(module, each) for each in _names_used(used)]
                pending += _named_of_jobs(used)
    return found


@cache
def _statements(job: str) -> tuple[ast.stmt, ...]:
    return tuple(ast.parse((JOBS / f"{job}.py").read_bytes()).body)


def _named_of_jobs(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield what a statement imports of the modules of jobs."""
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{OF_JOBS}."):
            module = str(node.module).removeprefix(f"{OF_JOBS}.")
            yield from ((module, alias.name) for alias in node.names)


def _names_bound(statement: ast.stmt) -> Iterable[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [each.id for each in targets if isinstance(each, ast.Name)]
    return []


def _with_one_name(statement: ast.stmt, name: str) -> ast.stmt:
    """Return an import of several names with the one alone that is used."""
    if not isinstance(statement, ast.ImportFrom):
        return statement
    names = [alias for alias in statement.names if (alias.asname or alias.name) == name]
    return ast.ImportFrom(statement.module, names, statement.level)


def _names_used(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement uses when it is run: annotations do not count."""
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
