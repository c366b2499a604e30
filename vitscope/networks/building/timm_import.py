"""Import timm, and with it torchvision: beside any torch, and without what nothing here uses.

A torchvision that was built for CUDA cannot load its compiled operators beside a CPU-only torch. It
runs well without them, but for one thing: while it is imported it attaches shape functions to two
operators that nothing declared.
"""

import importlib
import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

import torch

from vitscope.networks.building.compiler import deferred_compiler

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
