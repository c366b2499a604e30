"""Find a user's own code without running it, run it, and explain its errors."""

import hashlib
import importlib
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from inspect import signature, unwrap
from itertools import takewhile
from os.path import normpath
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files import python_code

# Keys of `arch` that are not keywords of the function; `prepare` adds `code`, a digest.
OWN_KEYS = ("file", "module", "make", "code")
PACKAGE = __name__.partition(".")[0]
INSTALLED = ("site-packages", "dist-packages", Path(sysconfig.get_path("stdlib")).name)


@dataclass(frozen=True)
class OwnCode:
    """Locates a user's module by the absolute path of its file and its full name for imports."""

    file: Path
    module: str

    @property
    def root(self) -> Path:
        depth = self.module.count(".") + (self.file.name == "__init__.py")
        return self.file.parents[depth]

    @property
    def is_installed(self) -> bool:
        return self.root.name in INSTALLED

    def files(self) -> dict[str, Path]:
        """Return the files of the module, and of the modules beside it that it imports, by name."""
        if not self.is_installed:
            return python_code.reached_files([self.module], self._file_of)
        # Take all files of an installed library: following its imports would take seconds.
        found = python_code.sources_below(self.root / self.module.partition(".")[0])
        return {self._module_of(file): file for file in (self.file, *found)}

    def _file_of(self, module: str) -> Path | None:
        parts = module.split(".")
        # Skip vitscope itself, which is beside the user's file in a clone.
        if parts[0] == PACKAGE:
            return None
        return python_code.module_file(self.root.joinpath(*parts)) if all(parts) else None

    def _module_of(self, file: Path) -> str:
        parts = file.relative_to(self.root).with_suffix("").parts
        return ".".join(parts).removesuffix(".__init__")


def shown(file: Path) -> str:
    """Return a file's path for messages: relative if below the working directory."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def locate_user_code(arch: Mapping[str, Any], folder: Path, where: str) -> OwnCode:
    """Find the module that `arch` gives by file, relative to the study's `folder`, or by name."""
    if "file" not in arch:
        return _locate_own_module(arch["module"], folder, f"{where}.module")
    file = _absolute_path(path_in_study(folder, arch["file"]))
    there = _own_code_files_in(file.parent)
    if file.name not in there:
        raise VitscopeError(
            f"{where}.file: {shown(file)} is not a file of Python: give the path of a file NAME.py "
            f"that is there, relative to the study or absolute.{nearest(file.name, there)}"
        )
    return OwnCode(file, arch.get("module") or _own_module_name(file, f"{where}.file"))


def find_code(file: str, module: str) -> OwnCode:
    return locate_user_code({"file": file, "module": module}, Path(), "own code")


def _own_code_files_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.glob("*.py") if path.is_file()]
    except OSError:
        # The folder cannot be read, or its name is not valid here.
        return []


def path_in_study(folder: Path, file: str) -> Path:
    """Resolve a path in a study: absolute, relative to `folder`, or beginning with `~/`."""
    # Expand only `~/`: a file in another user's home is refused as missing.
    return folder / (Path(file).expanduser() if file.startswith("~/") else file)


def _absolute_path(path: Path) -> Path:
    # Remove every `..`: the folders above a file decide which package it is in.
    return Path(normpath(path.absolute()))


def prepare(arch: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """Find the code without running it; return `arch` with its file, module and digest."""
    own = locate_user_code(arch, folder, where)
    code = digest_of_own_code(own, where)
    # Keep the path relative if `folder` is, so that moving the whole folder changes nothing.
    said, start = own.file, _absolute_path(folder)
    if "file" in arch:
        said = path_in_study(folder, arch["file"])
    elif own.file.is_relative_to(start):
        said = folder / own.file.relative_to(start)
    return {**arch, "file": str(said), "module": own.module, "code": code}


def _own_module_name(file: Path, where: str) -> str:
    """Return the full name of a file's module, with the packages that contain it."""
    packages = takewhile(lambda folder: (folder / "__init__.py").is_file(), file.parents)
    parts = [folder.name for folder in packages][::-1]
    parts += [] if file.name == "__init__.py" else [file.stem]
    if any("." in part for part in parts):
        raise VitscopeError(
            f"{where}: {shown(file)} cannot be imported, because of the dot in its name: rename it."
        )
    return ".".join(parts)


def _locate_own_module(name: str, folder: Path, where: str) -> OwnCode:
    """Find a module beside the study or else an installed module, without importing it."""
    top, *inner = name.split(".")
    spec = PathFinder.find_spec(top, [str(_absolute_path(folder))]) or _find_installed_own_code(top)
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
    return OwnCode(_absolute_path(Path(origin)), name)


def _find_installed_own_code(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ValueError:
        # The module is loaded already and has no `__spec__`.
        return None


def digest_of_own_code(own: OwnCode, where: str) -> str:
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
    if (hiding := files.get(own.module)) != own.file:
        raise VitscopeError(
            f"{where}: {shown(own.file)} cannot be imported beside {hiding}: rename it."
        )
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name].read_bytes() + b"\0")
    return digest.hexdigest()[:16]


# Maps the absolute path of each user file in use to the path that messages show.
_FILES: dict[Path, str] = {}
# The folder that was put on sys.path for these files; empty for installed code.
_FOLDERS: list[str] = []


def call_user_function(arch: Mapping[str, Any], keywords: Mapping[str, Any]) -> object:
    own = locate_user_code(arch, Path(), "arch")
    with running_user_code(own, arch["make"]) as module:
        function = find_user_function(module, arch["make"])
        check_user_call(function, {}, keywords)
        return function(**keywords)


def find_user_function(module: ModuleType, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] | None = getattr(module, name, None)
    if callable(found):
        return found
    own = [key for key, it in vars(module).items() if callable(it) and _is_from(module, it)]
    raise VitscopeError(
        f"{shown(Path(str(module.__file__)))} has no function {quoted(name)}; it has "
        f"{', '.join(own) or 'none'}.{nearest(name, own)}"
    )


def _is_from(module: ModuleType, value: object) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def check_user_call(
    function: Callable[..., Any], arguments: Mapping[str, object], keywords: Mapping[str, object]
) -> None:
    """Refuse a call that does not fit the signature of a user's function.

    `arguments` are passed by their positions; a message calls them by their keys.
    """
    try:
        takes = signature(function)
    except ValueError:  # Some functions that are not written in Python have no signature.
        return
    try:
        takes.bind(*arguments.values(), **keywords)
    except TypeError as error:
        names = [*takes.parameters]
        unknown = next((key for key in keywords if key not in names), "")
        raise VitscopeError(
            f"{file_and_line_of(function)}: {getattr(function, '__name__', 'it')} is called with "
            f"{', '.join([*arguments, *keywords]) or 'nothing'} and takes "
            f"{', '.join(names) or 'nothing'}: {error}.{nearest(unknown, names)}"
        ) from error


def file_and_line_of(function: Callable[..., Any]) -> str:
    """Return the file and the line of a function, or of what initializes a class, for messages."""
    plain: Any = unwrap(function)
    code = getattr(plain, "__code__", None) or getattr(plain.__init__, "__code__", None)
    return f"{shown(Path(code.co_filename))}, line {code.co_firstlineno}" if code else repr(plain)


@contextmanager
def running_user_code(own: OwnCode, what: str) -> Iterator[ModuleType]:
    """Import a user's module for the block; report errors in the user's code by file and line."""
    _begin_own_code_imports(own)
    # Write no bytecode beside a user's files: it hides a second edit within one second.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield importlib.import_module(own.module)
    except (VitscopeError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        place = f"{shown(own.file)}: {what}"
        raise VitscopeError(
            explain_own_code_error(error) or f"{place}: {_error_in_words(error)}."
        ) from error
    finally:
        sys.dont_write_bytecode = before


def explain_own_code_error(error: BaseException) -> str | None:
    """Return a sentence that locates an error in a user's code; None for an error elsewhere."""
    if isinstance(error, SyntaxError) and (file := _FILES.get(Path(error.filename or ""))):
        return f"{file}, line {error.lineno}: {_error_in_words(error)}."
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if file := _FILES.get(Path(frame.filename)):
            return f"{file}, line {frame.lineno}, in {frame.name}: {_error_in_words(error)}."
    return None


def _error_in_words(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = text.strip().partition("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _begin_own_code_imports(own: OwnCode) -> None:
    """Put the folder of a user's code on sys.path, in place of the folder of earlier code."""
    files = own.files()
    if not own.is_installed and [str(own.root)] != _FOLDERS:
        _end_own_code_imports()
        sys.path.insert(0, str(own.root))
        _FOLDERS.append(str(own.root))
    _FILES.update({file: shown(file) for file in files.values()})
    importlib.invalidate_caches()
    for name, file in files.items():
        loaded = sys.modules.get(name)
        origin = getattr(loaded, "__file__", None)
        if loaded is not None and (origin is None or not file.samefile(origin)):
            raise VitscopeError(
                f"{shown(file)} has the name of the module {name}, which is loaded already from "
                f"{origin or 'Python itself'}: rename the file, or the folder that it lies in."
            )


def _end_own_code_imports() -> None:
    while _FOLDERS:
        folder = _FOLDERS.pop()
        if folder in sys.path:
            sys.path.remove(folder)
        for name, module in [*sys.modules.items()]:
            origin = Path(getattr(module, "__file__", None) or "")
            if origin in _FILES and origin.is_relative_to(folder):
                del sys.modules[name]
    _FILES.clear()


HERE = Path(__file__).parents[2]
FAMILIES = Path(__file__).with_name("families")
# Python calls this method of torch.nn.Module for attributes that a module lacks.
GETS = "__getattr__"


def explain_network_code_failure(error: Exception) -> str | None:
    """Return a sentence about an error that the code of a network raised; None for other errors."""
    torch = sys.modules.get("torch")
    if torch is None or torch.__file__ is None:
        return None
    # Leave out code that records operations: it runs between the network and torch.
    recording = ("__torch_dispatch__", "__torch_function__")
    walked = walk_tb(error.__traceback__)
    frames = [*takewhile(lambda each: each[0].f_code.co_name not in recording, walked)]
    running = [(frame, frame.f_locals.get("self")) for frame, _ in frames]
    inside = [n for n, (_, it) in enumerate(running) if isinstance(it, torch.nn.Module)]
    if not inside:
        return None
    root, (innermost, module) = running[inside[0]][1], running[inside[-1]]
    library, kind = Path(torch.__file__).parent, type(module).__name__
    files = [Path(frame.f_code.co_filename) for frame, _ in frames]
    own = [n for n, file in enumerate(files) if not file.is_relative_to(library)]
    last = own[-1] if own else 0
    file, line = files[last], frames[last][1]
    # Files of vitscope do not belong to the network, except those of families.
    known = bool(own) and (not file.is_relative_to(HERE) or file.is_relative_to(FAMILIES))
    if isinstance(error, AttributeError) and not known and innermost.f_code.co_name == GETS:
        missing = innermost.f_locals.get("name")
        return (
            f"the network's module ({kind}) has no '{missing}', which models of its family have: "
            f"choose the family that fits it."
        )
    # Do not blame the network for an error in code of vitscope that it called.
    if not known and own and own[-1] > inside[0]:
        return None
    modules = root.named_modules() if isinstance(root, torch.nn.Module) else ()
    names = {id(each): name for name, each in modules}
    called = f"'{names[id(module)]}' ({kind})" if names.get(id(module)) else f"({kind})"
    place = f" at {file}, line {line}" if known else ""
    return (
        f"the module {called} of the network fails{place}: {type(error).__name__}: {error}: "
        f"correct it, or how the study says to build it."
    )
