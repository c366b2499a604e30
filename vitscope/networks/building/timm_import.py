"""Import timm and torchvision beside any torch."""

import importlib
import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

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
        return importlib.import_module(name)


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
