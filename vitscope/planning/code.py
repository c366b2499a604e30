"""A digest of the code that a job reaches, so that a workflow knows when to run it again.

It covers what the job's `run` uses, what this uses, and so on, in every module of vitscope and of
the packages that bring measures, and what importing these modules runs. The `modules` among a job's
values name functions that are imported by computed names, as `module:name`; a module there counts
as a whole, and so does one of which a name cannot be followed.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from vitscope.files import python_code
from vitscope.files.python_code import Definition, definitions
from vitscope.jobs.job import Values, find_job
from vitscope.measures.registry import installed

PACKAGE = Path(__file__).parents[1]
# In place of a name: everything that a module defines, or only what importing it runs.
ALL, LOADED = "*", ""
# A module, a name in it, and, if that name is a module too, the attribute taken from it.
Name = tuple[str, str, str]


def code_digest(job: str, values: Values) -> str:
    return _digest(job, tuple(sorted(values.get("modules", ()))))


@cache
def _digest(job: str, modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for (module, number), definition in sorted(_covered(job, modules).items()):
        digest.update(f"{module}\0{number}\0{definition.digest}\0".encode())
    return digest.hexdigest()[:16]


@cache
def module_file(name: str) -> Path | None:
    """Return the file of a module; a user's own module has its path as its name."""
    if name.endswith(".py"):
        return Path(name)
    top, *parts = name.split(".")
    places = [PACKAGE] if top == PACKAGE.name else installed().places.get(top, ())
    files = (python_code.module_file(place.joinpath(*parts)) for place in places)
    return next(filter(None, files), None)


@cache
def _definitions(module: str) -> list[Definition]:
    file = module_file(module)
    if file is None:
        return []
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return definitions(file.read_bytes(), package, str(file))


@cache
def _bound(module: str) -> dict[str, list[Definition]]:
    found: dict[str, list[Definition]] = {}
    for definition in _definitions(module):
        for name in definition.names or [each[0] for each in definition.imports]:
            found.setdefault(name, []).append(definition)
    return found


@cache
def _reached(job: str, modules: tuple[str, ...]) -> frozenset[Name]:
    """Return every name that a job's work reaches, and each module that it imports."""
    run = find_job(job).run
    pending: list[Name] = [(run.__module__, run.__name__, "")]
    for named in modules:
        module, function = (named, "") if named.endswith(".py") else named.partition(":")[::2]
        if module_file(module):
            pending.append((module, function or ALL, ""))
    found: set[Name] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _next(*name)
    return frozenset(found)


@cache
def _next(module: str, name: str, taken: str) -> tuple[Name, ...]:
    return tuple(
        dict.fromkeys(each for each in _needed(module, name, taken) if module_file(each[0]))
    )


def _needed(module: str, name: str, taken: str) -> Iterator[Name]:
    """Yield what a name needs: what its definitions use, and what importing its module runs."""
    for parent in python_code.module_and_parents(module):
        yield parent, LOADED, ""
    for definition in _chosen(module, name):
        if name not in (LOADED, ALL) and definition.is_import:
            ((_, where, what),) = definition.imports
            yield from _follow(where, what, taken)
            continue
        for each in definition.imports:
            yield each[1], LOADED, ""
            if not each[0] or each[2] == ALL:
                yield each[1], ALL, ""
            elif each[2]:
                yield f"{each[1]}.{each[2]}", LOADED, ""
        if name == LOADED and definition.is_import:
            continue
        local = {alias: (where, what) for alias, where, what in definition.imports}
        for used, of_it in definition.uses:
            if used in local:
                yield from _follow(*local[used], of_it)
            elif used in _bound(module):
                yield module, used, of_it
    if name == ALL:
        for bound, defined in _bound(module).items():
            if not all(definition.for_types for definition in defined):
                yield module, bound, ""


def _chosen(module: str, name: str) -> list[Definition]:
    """Return the definitions of a name, of ALL names, or those that LOADED stands for."""
    if name == ALL:
        return _definitions(module)
    if name == LOADED:
        return [each for each in _definitions(module) if not each.names or each.is_import]
    return _bound(module)[name]


def _follow(module: str, what: str, taken: str) -> Iterator[Name]:
    """Yield where an import leads: a name in a module, or a module and what is taken from it."""
    if what and what != ALL and what in _bound(module):
        yield module, what, taken
        return
    inner = f"{module}.{what}" if what and what != ALL else module
    if module_file(inner) is None:
        # A name that its module does not define cannot be followed.
        yield module, ALL, ""
    elif taken and taken in _bound(inner):
        yield inner, taken, ""
    elif taken and module_file(f"{inner}.{taken}"):
        yield f"{inner}.{taken}", ALL, ""
    else:
        yield inner, ALL, ""


@cache
def _covered(job: str, modules: tuple[str, ...]) -> dict[tuple[str, int], Definition]:
    """Return the definitions that a job reaches, by module and place in it."""
    names: dict[str, set[str]] = {}
    for module, name, _ in _reached(job, modules):
        names.setdefault(module, set()).add(name)
    return {
        (module, number): definition
        for module, of_module in names.items()
        for number, definition in enumerate(_definitions(module))
        if not definition.names or ALL in of_module or not of_module.isdisjoint(definition.names)
    }
