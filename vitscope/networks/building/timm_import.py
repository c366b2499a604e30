"""Import timm and torchvision beside any torch, and without torch's compiler.

The compiler takes as long to import as torch, and both import it only to decorate functions of a
few networks.
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

# A torchvision built for CUDA cannot load its compiled operators beside a CPU-only torch. It runs
# well without them, but its import attaches shape functions to these two.
UNDECLARED = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
# A declaration lasts as long as the library object that made it.
_LIBRARIES: list[torch.library.Library] = []


def import_timm(name: str = "timm") -> ModuleType:
    declare()
    with warnings.catch_warnings():
        # timm imports tqdm, which would warn in every notebook without ipywidgets.
        warnings.filterwarnings("ignore", message="IProgress not found")
        try:
            with _compiler_deferred():
                return importlib.import_module(name)
        except ImportError:
            # Another version may need more of the compiler at once.
            return importlib.import_module(name)


@contextmanager
def _compiler_deferred() -> Iterator[None]:
    """Let what is imported in the block import torch's compiler when it is first needed."""
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
    """Ask torch's compiler, in place of the function that torchvision imports."""
    from torch._dynamo.utils import is_compile_supported

    return bool(is_compile_supported(device))


def _disabled_later(function: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude a function from compiling once it is called, as `torch.compiler.disable` does."""

    @cache
    def disabled() -> Callable[..., Any]:
        exclude: Callable[..., Any] = vars(torch.compiler)["disable"]
        excluded: Callable[..., Any] = exclude(function)
        return excluded

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return disabled()(*arguments, **named)

    return call


def declare() -> None:
    """Declare what `import torchvision` expects, if its own operators cannot be loaded."""
    missing = [name for name in UNDECLARED if not hasattr(torch.ops.torchvision, name)]
    if not missing or _loads_its_operators():
        return
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in missing:
        library.define(name + UNDECLARED[name])  # type: ignore[no-untyped-call]
    _LIBRARIES.append(library)


def _loads_its_operators() -> bool:
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
