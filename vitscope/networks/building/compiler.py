"""Do without torch's compiler, and import timm and torchvision without it."""

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.nn import Module

COMPILER = "torch._dynamo"
UTILS = "torch._dynamo.utils"
# Blocks in which nothing is to be compiled, should the compiler be imported.
_UNCOMPILED: list[ExitStack] = []


class _Deferred(ModuleType):
    """A module that is imported when a name is asked of it that it has not; its others can wait.

    LazyLoader of the standard library would import it when anything is asked, and so at once.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "__path__" and self.__name__ != COMPILER:
            # Every `from` asks whether a module is a package.
            raise AttributeError(name)
        return getattr(_import(self.__name__), name)


class _ImportedMeanwhile(MetaPathFinder, Loader):
    """Finds modules of the compiler that its import brought, where `__path__` was asked for.

    `import torch._dynamo.config` asks the package for its path, which imports all of it, and goes
    on to import the module: a second time, if the one that is there were not found.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return how to find a module, if it is there."""
        there = name.startswith(COMPILER) and name in sys.modules
        return spec_from_loader(name, self) if there else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module that is there."""
        module = sys.modules[spec.name]
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is."""
        vars(module)["__spec__"] = self._specs.pop(module.__name__)


@contextmanager
def deferred_compiler() -> Iterator[None]:
    """Import the compiler in the block only if something needs it."""
    if COMPILER in sys.modules:
        yield
        return
    compiler = _defer(COMPILER, torch.__path__, disable=_disable)
    _defer(UTILS, vars(compiler).pop("__path__"), is_compile_supported=_is_compile_supported)
    finder = _ImportedMeanwhile()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _forget_deferred()


def original(network: Module) -> Module:
    """Return the network that one is which `torch.compile` returned, or the network itself."""
    return getattr(network, "_orig_mod", network)


def is_compiled(network: Module) -> bool:
    """Tell whether a network is compiled, or a module of it."""
    return any(
        module._compiled_call_impl is not None or hasattr(module, "_orig_mod")
        for module in network.modules()
    )


@contextmanager
def uncompiled() -> Iterator[None]:
    """Run what is compiled step by step in the block, so that every operation can be seen.

    FlexAttention compiles itself, and fails where a dispatch mode hinders that; so does a network
    that was compiled as one graph.
    """
    with deferred_compiler(), ExitStack() as block:
        if _is_imported():
            _stop_compiling(block)
        else:
            _UNCOMPILED.append(block)
            block.callback(_UNCOMPILED.remove, block)
        yield


def _defer(name: str, path: Sequence[str], **known: Callable[..., Any]) -> ModuleType:
    """Put a module that is not imported yet in its place, with the functions that can wait."""
    spec = PathFinder.find_spec(name, path)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)
    module.__class__ = _Deferred
    vars(module).update(known)
    return module


def _stop_compiling(block: ExitStack) -> None:
    block.enter_context(torch.compiler.set_stance("force_eager"))


def _is_imported() -> bool:
    return COMPILER in sys.modules and not isinstance(sys.modules[COMPILER], _Deferred)


def _import(name: str) -> ModuleType:
    """Import a module of the compiler in the place of the deferred one."""
    _forget_deferred()
    module = importlib.import_module(name)
    for block in _UNCOMPILED:
        _stop_compiling(block)
    return module


def _forget_deferred() -> None:
    for name in (COMPILER, UTILS):
        if isinstance(sys.modules.get(name), _Deferred):
            del sys.modules[name]


def _disable(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Switch the compiler off for a function, as soon as there is a compiler."""
    if not isinstance(function, FunctionType):
        return _import(COMPILER).disable(function, *args, **kwargs)
    disabled: Callable[..., Any] | None = None

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        nonlocal disabled
        if disabled is None and _is_imported():
            # While it is being imported, it cannot compile anything.
            disable = getattr(sys.modules[COMPILER], "disable", None)
            disabled = disable and disable(function, *args, **kwargs)
        return (disabled or function)(*given, **named)

    # The mark by which the compiler knows a function that it is to leave alone.
    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call


def _is_compile_supported(device: str) -> Any:
    return _import(UTILS).is_compile_supported(device)


UNDECLARED = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
# A declaration lasts as long as the library object that made it.
_LIBRARIES: list[torch.library.Library] = []


def declare() -> None:
    """Declare what `import torchvision` expects, where its own operators cannot be loaded."""
    if not _missing() or _loads_its_operators():
        return
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in _missing():
        library.define(name + UNDECLARED[name])  # type: ignore[no-untyped-call]
    _LIBRARIES.append(library)


def import_timm(name: str = "timm") -> ModuleType:
    """Import timm, or a module of it, which imports torchvision in turn.

    For one decorator each, they import all of torch's compiler.
    """
    declare()
    with deferred_compiler(), warnings.catch_warnings():
        # timm imports tqdm, which would warn every notebook that has no ipywidgets.
        warnings.filterwarnings("ignore", message="IProgress not found")
        return importlib.import_module(name)


def _missing() -> list[str]:
    """Return the operators that nothing has declared yet."""
    return [name for name in UNDECLARED if not hasattr(torch.ops.torchvision, name)]


def _loads_its_operators() -> bool:
    """Load the compiled operators of torchvision, and tell whether that worked."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    libraries = [
        *Path(spec.origin).parent.glob("_C*.so"),
        *Path(spec.origin).parent.glob("_C*.pyd"),
    ]
    try:
        for library in libraries:
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except OSError:
        return False
    return bool(libraries)
