"""Run a user's own code that builds a network, and tell its errors by their file and line."""

import importlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from vitscope.errors import VitscopeError
from vitscope.networks.building.own_code import OwnCode, locate, shown

# The files of the code that runs, as Python names them and as messages do.
_FILES: dict[Path, str] = {}
# The folder that its imports begin in, if it is none that is installed.
_FOLDERS: list[str] = []


def call(arch: Mapping[str, Any], keywords: Mapping[str, Any]) -> object:
    """Call the function that `arch` names, and return what it made."""
    own = locate(arch, Path(), "arch")
    with running(own, arch["make"]) as module:
        return getattr(module, arch["make"])(**keywords)


@contextmanager
def running(own: OwnCode, what: str) -> Iterator[ModuleType]:
    """Import a user's code and lend its module; an error in it ends in its file and line."""
    _enter(own)
    try:
        with _leaving_no_bytecode():
            yield importlib.import_module(own.module)
    except (VitscopeError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        place = f"{shown(own.file)}: {what}"
        raise VitscopeError(explain_user_error(error) or f"{place}: {_reason(error)}.") from error


def explain_user_error(error: BaseException) -> str | None:
    """Return the sentence of an error whose traceback leads through a user's code, if it does."""
    if isinstance(error, SyntaxError) and (file := _FILES.get(Path(error.filename or ""))):
        return f"{file}, line {error.lineno}: {_reason(error)}."
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if file := _FILES.get(Path(frame.filename)):
            return f"{file}, line {frame.lineno}, in {frame.name}: {_reason(error)}."
    return None


def _reason(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = text.strip().partition("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _enter(own: OwnCode) -> None:
    """Let imports begin in the folder of a user's code.

    Networks may have files of the same name: the last folder's files are imported.
    """
    files = own.files()
    if not own.is_installed and [str(own.root)] != _FOLDERS:
        _leave()
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


def _leave() -> None:
    """Forget the folder of another network, and the modules that were imported from there."""
    while _FOLDERS:
        folder = _FOLDERS.pop()
        if folder in sys.path:
            sys.path.remove(folder)
        for name, module in [*sys.modules.items()]:
            origin = Path(getattr(module, "__file__", None) or "")
            if origin in _FILES and origin.is_relative_to(folder):
                del sys.modules[name]
    _FILES.clear()


@contextmanager
def _leaving_no_bytecode() -> Iterator[None]:
    """Write nothing beside a user's files; bytecode hides an edit within a second of another."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
