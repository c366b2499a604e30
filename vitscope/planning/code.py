"""A digest of the code that a job reaches, so that a workflow knows when to run the job again.

The digest covers the definitions that the job's `run` uses, those that these use, and so on, in
vitscope and in packages that add measures, and the code that runs when their modules are imported.
The key `modules` of a job's values lists functions that are imported by computed names, as
`module:name`. A module listed without a name is covered as a whole, and so is a module of which
something is used that cannot be found by its name.
"""

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path

from vitscope.errors import VitscopeError
from vitscope.files import python_code
from vitscope.files.python_code import Cache, Definition, definitions
from vitscope.jobs.job import Values, find_job
from vitscope.measures.registry import installed

PACKAGE = Path(__file__).parents[1]
# Stands for all names that a module defines.
ALL = "*"
# Stands for the code that runs when a module is imported.
LOADED = ""
# A module, a name in it, and, if that name is a module too, the attribute taken from it.
Name = tuple[str, str, str]
# The digests of jobs, by the job, its modules and a digest of all sources.
_known_digests = Cache()


def cache_code(folder: Path) -> None:
    """Keep the digests of jobs in a folder, and what modules define; read only what has changed."""
    python_code.found_definitions.keep_in(folder / "vitscope-definitions.json")
    _known_digests.keep_in(folder / "vitscope-digests.json", _digest_of_sources())


def code_digest(job: str, values: Values) -> str:
    return _digest_of_job(job, tuple(sorted(values.get("modules", ()))))


@cache
def _digest_of_job(job: str, modules: tuple[str, ...]) -> str:
    own = [sha256(Path(each).read_bytes()).hexdigest() for each in modules if each.endswith(".py")]
    key = " ".join((_digest_of_sources(), job, *modules, *own))
    if key not in _known_digests:
        _known_digests[key] = _digest_of_covered(job, modules)
    return str(_known_digests[key])


@cache
def _digest_of_sources() -> str:
    """Return a digest of all modules of vitscope and of packages that add measures."""
    digest = sha256()
    for place in chain([PACKAGE], *installed().places.values()):
        for file in python_code.sources_below(place):
            source = file.read_bytes()
            digest.update(f"{file.relative_to(place)}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()


def _digest_of_covered(job: str, modules: tuple[str, ...]) -> str:
    digest = sha256()
    # In their order, but not by number: what is not covered may come and go between them.
    for (module, _), definition in sorted(_covered_definitions(job, modules).items()):
        digest.update(f"{module}\0{definition.digest}\0".encode())
    return digest.hexdigest()[:16]


@cache
def module_file(name: str) -> Path | None:
    """Return the file of a module; a user's own module has its path as its name."""
    if name.endswith(".py"):
        return Path(name)
    top, *parts = name.split(".")
    files = (python_code.module_file(place.joinpath(*parts)) for place in places().get(top, ()))
    return next(filter(None, files), None)


@cache
def places() -> dict[str, list[Path]]:
    """Return the folders of each package whose code is followed."""
    return {PACKAGE.name: [PACKAGE], **installed().places}


@cache
def _definitions_in(module: str) -> list[Definition]:
    file = module_file(module)
    if file is None:
        return []
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return definitions(file.read_bytes(), package, str(file))


@cache
def _definitions_by_name(module: str) -> dict[str, list[Definition]]:
    found: dict[str, list[Definition]] = {}
    for definition in _definitions_in(module):
        for name in definition.names or [each[0] for each in definition.imports]:
            found.setdefault(name, []).append(definition)
    return found


@cache
def _reached_names(job: str, modules: tuple[str, ...]) -> frozenset[Name]:
    """Return every name that a job's `run` reaches, and each module that it imports."""
    run = find_job(job).run
    pending: list[Name] = [(run.__module__, run.__name__, "")]
    for named in modules:
        module, function = (named, "") if named.endswith(".py") else named.partition(":")[::2]
        if module_file(module):
            pending.append((module, function or ALL, ""))
        if function and function not in _definitions_by_name(module):
            raise VitscopeError(f"A measure names {named}, which is not there: correct the name.")
    return frozenset(names_reached_from(pending))


def names_reached_from(pending: list[Name]) -> set[Name]:
    """Return some names and all that these need, however far away."""
    found: set[Name] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _names_needed(*name)
    return found


@cache
def _names_needed(module: str, name: str, taken: str) -> tuple[Name, ...]:
    return tuple(
        dict.fromkeys(
            each for each in _names_needed_by(module, name, taken) if module_file(each[0])
        )
    )


def _names_needed_by(module: str, name: str, taken: str) -> Iterator[Name]:
    """Yield what a name needs: what its definitions use, and what importing its module runs."""
    for parent in python_code.module_and_parents(module):
        yield parent, LOADED, ""
    for definition in _definitions_of(module, name):
        if name not in (LOADED, ALL) and definition.is_import:
            ((_, where, what),) = definition.imports
            yield from _follow_import(where, what, taken)
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
                yield from _follow_import(*local[used], of_it)
            elif used in _definitions_by_name(module):
                yield module, used, of_it
    if name == ALL:
        for bound, defined in _definitions_by_name(module).items():
            if not all(definition.for_types for definition in defined):
                yield module, bound, ""


def _definitions_of(module: str, name: str) -> list[Definition]:
    """Return the definitions of a name; ALL and LOADED stand for several names."""
    if name == ALL:
        return _definitions_in(module)
    if name == LOADED:
        return [each for each in _definitions_in(module) if not each.names or each.is_import]
    return _definitions_by_name(module)[name]


def _follow_import(module: str, what: str, taken: str) -> Iterator[Name]:
    """Yield the name that an import leads to; `taken` is the attribute used of the import."""
    if what and what != ALL and what in _definitions_by_name(module):
        yield module, what, taken
        return
    inner = f"{module}.{what}" if what and what != ALL else module
    if module_file(inner) is None:
        # The module does not define this name, so cover it as a whole.
        yield module, ALL, ""
    elif taken and taken in _definitions_by_name(inner):
        yield inner, taken, ""
    elif taken and module_file(f"{inner}.{taken}"):
        yield f"{inner}.{taken}", ALL, ""
    else:
        yield inner, ALL, ""


@cache
def _covered_definitions(job: str, modules: tuple[str, ...]) -> dict[tuple[str, int], Definition]:
    """Return the definitions that a job reaches, by module and index in the module."""
    names: dict[str, set[str]] = {}
    for module, name, _ in _reached_names(job, modules):
        names.setdefault(module, set()).add(name)
    return {
        (module, number): definition
        for module, of_module in names.items()
        for number, definition in enumerate(_definitions_in(module))
        if not definition.names or ALL in of_module or not of_module.isdisjoint(definition.names)
    }
