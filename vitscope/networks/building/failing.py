"""What a network fails with in its own code, in one sentence that names the module."""

import sys
from itertools import takewhile
from pathlib import Path
from traceback import walk_tb
from types import FrameType

HERE = Path(__file__).parents[2]


def explain_failure(error: Exception) -> str | None:
    """Return what went wrong within a network; None if it was elsewhere, or in vitscope itself."""
    torch = sys.modules.get("torch")
    if torch is None or torch.__file__ is None:
        return None
    # What records operations runs between the network and torch, and is none of its code.
    frames = list(takewhile(lambda each: not _records(each[0]), walk_tb(error.__traceback__)))
    running = ((frame, frame.f_locals.get("self")) for frame, _ in frames)
    inside = [(frame, it) for frame, it in running if isinstance(it, torch.nn.Module)]
    library = Path(torch.__file__).parent
    own = [(f, line) for f, line in frames if not _file_of(f).is_relative_to(library)]
    if not inside or not own:
        return None
    (_, root), (innermost, module) = inside[0], inside[-1]
    (frame, line), kind = own[-1], type(module).__name__
    if not _file_of(frame).is_relative_to(HERE):
        names = {id(each): name for name, each in root.named_modules()}
        called = f"'{names[id(module)]}' ({kind})" if names.get(id(module)) else f"({kind})"
        return (
            f"the module {called} of the network fails at {_file_of(frame)}, line {line}: "
            f"{type(error).__name__}: {error}: correct it, or how the study says to build it."
        )
    if isinstance(error, AttributeError) and innermost.f_code.co_name == "__getattr__":
        missing = innermost.f_locals.get("name")
        return (
            f"the network's module ({kind}) has no '{missing}', which models of its family have: "
            f"choose the family that fits it."
        )
    return None


def _records(frame: FrameType) -> bool:
    return frame.f_code.co_name in ("__torch_dispatch__", "__torch_function__")


def _file_of(frame: FrameType) -> Path:
    return Path(frame.f_code.co_filename)
