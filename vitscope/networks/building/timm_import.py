"""Import timm and torchvision with any build of torch, and without torch's compiler.

Importing the compiler takes as long as importing torch, and timm and torchvision need it only to
decorate functions of a few networks.
"""

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

# A torchvision built for CUDA cannot load its compiled operators with a CPU-only torch. It works
# without them, but its import expects these two to be declared.
UNDECLARED = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
# Keep library objects here: a declaration ends with the object that made it.
_LIBRARIES: list[torch.library.Library] = []


def import_timm(name: str = "timm") -> ModuleType:
    declare_torchvision_operators()
    with warnings.catch_warnings():
        # timm imports tqdm, which would warn in every notebook without ipywidgets.
        warnings.filterwarnings("ignore", message="IProgress not found")
        try:
            with _timm_import_without_compiler():
                return importlib.import_module(name)
        except ImportError:
            # Another version of timm may use more of the compiler during its import: defer nothing.
            return importlib.import_module(name)


@contextmanager
def _timm_import_without_compiler() -> Iterator[None]:
    """Make modules imported in the block import torch's compiler only when they first need it."""
    compiler, decorators = "torch._dynamo", "torch._dynamo.utils"
    if compiler in sys.modules:
        yield
        return
    deferred, public = ModuleType(decorators), vars(torch.compiler)
    disable = public["disable"]
    vars(deferred)["is_compile_supported"] = _is_compile_supported
    sys.modules[decorators] = deferred
    public["disable"] = _disabled_later
    try:
        yield
    finally:
        public["disable"] = disable
        if sys.modules.get(decorators) is deferred:
            del sys.modules[decorators]


def _is_compile_supported(device: str) -> bool:
    """Replace the function that torchvision imports; import the compiler when called."""
    from torch._dynamo.utils import is_compile_supported

    return bool(is_compile_supported(device))


def _disabled_later(function: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude a function from compiling, as `torch.compiler.disable` does, at its first call."""

    @cache
    def excluded_function() -> Callable[..., Any]:
        exclude: Callable[..., Any] = vars(torch.compiler)["disable"]
        excluded: Callable[..., Any] = exclude(function)
        return excluded

    @wraps(function)
    def call_excluded(*arguments: Any, **named: Any) -> Any:
        return excluded_function()(*arguments, **named)

    return call_excluded


def declare_torchvision_operators() -> None:
    """Declare the operators that `import torchvision` expects, if it cannot load its own."""
    missing = [name for name in UNDECLARED if not hasattr(torch.ops.torchvision, name)]
    if not missing or _torchvision_loads_operators():
        return
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in missing:
        library.define(name + UNDECLARED[name])  # type: ignore[no-untyped-call]
    _LIBRARIES.append(library)


def _torchvision_loads_operators() -> bool:
    """Load the compiled operators of torchvision, and tell whether that worked."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    folder = Path(spec.origin).parent
    libraries = [*folder.glob("_C*.so"), *folder.glob("_C*.pyd")]
    try:
        for library in libraries:
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except OSError:
        return False
    return bool(libraries)
