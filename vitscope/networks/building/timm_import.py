"""Import timm and torchvision with any build of torch."""

import importlib
import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

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
        return importlib.import_module(name)


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
