"""A user's own code that builds a network: found and read here, which runs none of it.

`arch` names it by `file` or `module`, and a function in it by `make`. It is run where the
network is built, in vitscope.networks.building.own_run.
"""

import ast
import hashlib
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from os.path import normpath
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files import python_code

# What of `arch` is no keyword of the function; `code` is a digest, which no study gives.
OWN_KEYS = ("file", "module", "make", "code")
# Code that makes names while it runs: which, its source does not tell.
MAKING_NAMES = frozenset({"globals", "locals", "vars", "setattr", "exec"})
INSTALLED = ("site-packages", "dist-packages", Path(sysconfig.get_path("stdlib")).name)


@dataclass(frozen=True)
class OwnCode:
    """A module of the user's: its absolute file, and its name where imports begin."""

    file: Path
    module: str

    @property
    def root(self) -> Path:
        """The folder that its imports of other files begin in."""
        depth = self.module.count(".") + (self.file.name == "__init__.py")
        return self.file.parents[depth]

    @property
    def is_installed(self) -> bool:
        """Whether it lies where packages are installed, beside all others."""
        return self.root.name in INSTALLED

    def files(self) -> dict[str, Path]:
        """Return the module's file and those beside it that it imports, by their modules."""
        if not self.is_installed:
            return python_code.reached([self.module], self._file_of)
        # To follow the imports of a library takes seconds of every run; it changes as a whole.
        found = self.root.joinpath(self.module.partition(".")[0]).rglob("*.py")
        return {self._module_of(file): file for file in (self.file, *found)}

    def _file_of(self, module: str) -> Path | None:
        parts = module.split(".")
        return python_code.module_file(self.root.joinpath(*parts)) if all(parts) else None

    def _module_of(self, file: Path) -> str:
        parts = file.relative_to(self.root).with_suffix("").parts
        return ".".join(parts).removesuffix(".__init__")


def keywords(arch: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the function is called with."""
    return {key: value for key, value in arch.items() if key not in OWN_KEYS}


def shown(file: Path) -> str:
    """Return the path of a file as messages say it: from the working directory, if it is below."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def locate(arch: Mapping[str, Any], folder: Path, where: str) -> OwnCode:
    """Find the module that `arch` names; a file is relative to `folder`, the study's."""
    if "file" not in arch:
        return _module(arch["module"], folder, f"{where}.module")
    file = _absolute(_join(folder, arch["file"]))
    there = _files_in(file.parent)
    if file.name not in there:
        raise VitscopeError(
            f"{where}.file: {shown(file)} is not a file of Python: give the path of a file NAME.py "
            f"that is there, relative to the study or absolute.{nearest(file.name, there)}"
        )
    return OwnCode(file, arch.get("module") or _name_in_packages(file, f"{where}.file"))


def find_code(file: str, module: str) -> OwnCode:
    """Return the module that was found when the study was loaded."""
    return locate({"file": file, "module": module}, Path(), "own code")


def _files_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.glob("*.py") if path.is_file()]
    except OSError:
        # Not to be read, or with a name that no folder has.
        return []


def _join(folder: Path, file: str) -> Path:
    # The home of another user is not looked for: such a file is refused as one that is not there.
    return folder / (Path(file).expanduser() if file.startswith("~/") else file)


def _absolute(path: Path) -> Path:
    # What is above it decides which package it is in: no `..` may be left.
    return Path(normpath(path.absolute()))


def prepare(arch: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """Check what can be known before the code runs, and return `arch` as jobs take it.

    They take its file and its module, and as `code` a digest of the files that it is made of.
    """
    own = locate(arch, folder, where)
    code = digest_of(own, where)
    check_call(own, arch["make"], keywords(arch), where, f"{where}.make")
    # As it was said: what lies in a folder that moves is what it was.
    said = _join(folder, arch["file"]) if "file" in arch else _below(folder, own.file)
    return {**arch, "file": str(said), "module": own.module, "code": code}


def check_call(
    own: OwnCode, name: str, given: Mapping[str, Any], where: str, key: str, arguments: int = 0
) -> None:
    """Refuse a function that the source does not have, or that takes other keywords.

    It is called with so many arguments besides. `key` is what messages call the choice of it.
    """
    file = shown(own.file)
    if (hiding := own.files().get(own.module)) != own.file:
        raise VitscopeError(f"{where}: {file} cannot be imported beside {hiding}: rename it.")
    tree = ast.parse(own.file.read_bytes())
    defined = [*_definitions(tree.body)]
    found = [node for there, node in defined if there == name]
    if not found and not _makes_names(tree):
        functions = [there for there, node in defined if _is_made_here(node)]
        raise VitscopeError(
            f"{key}: {file} has no function {quoted(name)}; it has "
            f"{', '.join(functions) or 'none'}.{nearest(name, functions)}"
        )
    # One that is wrapped, or defined in more ways, may take other keywords.
    (made, *others) = found or [tree]
    function = _find_called(made)
    if function is not None and not others:
        place = f"{where}: {file}, line {function.lineno}"
        _check_keywords(name, function, given, place, arguments)


def _below(folder: Path, file: Path) -> Path:
    start = _absolute(folder)
    return folder / file.relative_to(start) if file.is_relative_to(start) else file


def _name_in_packages(file: Path, where: str) -> str:
    """Return the name of a module within the packages that its folder is one of."""
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if any("." in part for part in parts):
        raise VitscopeError(
            f"{where}: {shown(file)} cannot be imported, because of the dot in its name: rename it."
        )
    return ".".join(parts)


def _module(name: str, folder: Path, where: str) -> OwnCode:
    """Find a module beside the study, or else in the environment, without importing any."""
    top, *inner = name.split(".")
    spec = PathFinder.find_spec(top, [str(_absolute(folder))]) or _find_installed(top)
    found = top
    for part in inner:
        folders = spec.submodule_search_locations if spec else None
        found = f"{found}.{part}"
        spec = PathFinder.find_spec(found, [*folders]) if folders else None
    origin = spec.origin if spec else None
    if origin is None or not origin.endswith(".py"):
        problem = "is not written in Python" if origin else "is not there"
        raise VitscopeError(
            f"{where}: the module {name} {problem}: give one that lies beside the study or is "
            f"installed, or the path of its file as `file`."
        )
    return OwnCode(_absolute(Path(origin)), name)


def _find_installed(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ValueError:
        # A module that is loaded and does not say from where.
        return None


def digest_of(own: OwnCode, where: str) -> str:
    """Digest a module and the files that it imports, each by its module."""
    try:
        files = own.files()
    except SyntaxError as error:
        place = f"{shown(Path(error.filename or own.file))}, line {error.lineno}"
        raise VitscopeError(f"{where}: {place}: {error.msg}: correct it.") from error
    except (ValueError, RecursionError, OSError) as error:
        raise VitscopeError(
            f"{where}: {shown(own.file)}, or a file that it imports, cannot be read ({error}): "
            f"correct it."
        ) from error
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name].read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that statements of a module define, and by what."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], node
            continue
        for inner in ast.walk(node):
            # Also what is defined below an `if`, a `try` or a `with`.
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id, node
        for block in ("body", "orelse", "finalbody"):
            yield from _definitions(getattr(node, block, []))
        for handler in getattr(node, "handlers", []):
            yield from _definitions(handler.body)


def _is_made_here(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


def _find_called(made: ast.AST) -> ast.FunctionDef | None:
    """Return what takes the keywords: a function, or a class's own `__init__`; None if unclear."""
    if isinstance(made, ast.ClassDef):
        # A decorator or a metaclass may take other keywords.
        if made.decorator_list or made.keywords:
            return None
        functions = (node for node in made.body if isinstance(node, ast.FunctionDef))
        return _find_called(next((f for f in functions if f.name == "__init__"), ast.Pass()))
    return made if isinstance(made, ast.FunctionDef) and not made.decorator_list else None


def _makes_names(tree: ast.Module) -> bool:
    """Tell whether a module may have names that its source does not tell."""
    return any(
        (isinstance(node, ast.Name) and node.id in MAKING_NAMES)
        or (isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
        for node in ast.walk(tree)
    )


def _check_keywords(
    make: str,
    function: ast.FunctionDef,
    given: Mapping[str, Any],
    place: str,
    arguments: int,
) -> None:
    """Refuse keywords that a function does not take, and the lack of those that it needs.

    Its first so many arguments are given besides.
    """
    parameters = function.args
    if arguments and len(parameters.posonlyargs + parameters.args) < arguments:
        raise VitscopeError(
            f"{place}: {make} takes too few arguments: it is called with {arguments}."
        )
    # The first argument of a class is the object itself.
    of_class = function.name == "__init__" and make != "__init__"
    own = parameters.args[of_class + arguments :]
    named = [arg.arg for arg in [*own, *parameters.kwonlyargs]]
    for key in given:
        if key not in named and parameters.kwarg is None:
            raise VitscopeError(
                f"{place}: {make} takes no {quoted(key)}, it takes "
                f"{', '.join(named) or 'nothing'}.{nearest(key, named)}"
            )
    first_default = len(own) - len(parameters.defaults)
    needed = [arg.arg for arg in own[: max(first_default, 0)]]
    pairs = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    needed += [arg.arg for arg, default in pairs if default is None]
    missing = [name for name in needed if name not in given]
    if missing or parameters.posonlyargs:
        what = ", ".join(missing) or "arguments without names"
        raise VitscopeError(f"{place}: {make} needs {what}: add it to the arch.")
