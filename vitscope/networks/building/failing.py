"""What a network fails with in its own code, in one sentence that names the module."""

import sys
from itertools import takewhile
from pathlib import Path
from traceback import walk_tb
from types import FrameType

HERE = Path(__file__).parents[2]
FAMILIES = Path(__file__).with_name("families")
# What stands for torch's own where nothing is compiled.
COMPILER = Path(__file__).with_name("compiler.py")
# What is called in a module for what it does not have.
GETS = "__getattr__"


def explain_failure(error: Exception) -> str | None:
    """Return what went wrong within a network; None if it was elsewhere, or in vitscope itself."""
    torch = sys.modules.get("torch")
    if torch is None or torch.__file__ is None:
        return None
    # What records operations runs between the network and torch, and is none of its code.
    frames = list(takewhile(lambda each: not _records(each[0]), walk_tb(error.__traceback__)))
    running = [(frame, frame.f_locals.get("self")) for frame, _ in frames]
    inside = [n for n, (_, it) in enumerate(running) if isinstance(it, torch.nn.Module)]
    if not inside:
        return None
    root, (innermost, module) = running[inside[0]][1], running[inside[-1]]
    library, kind = Path(torch.__file__).parent, type(module).__name__
    of_torch = (library, COMPILER)
    files = [_file_of(frame) for frame, _ in frames]
    own = [n for n, file in enumerate(files) if not any(map(file.is_relative_to, of_torch))]
    frame, line = frames[own[-1]] if own else frames[0]
    known = bool(own) and _is_of_networks(_file_of(frame))
    if isinstance(error, AttributeError) and not known and innermost.f_code.co_name == GETS:
        missing = innermost.f_locals.get("name")
        return (
            f"the network's module ({kind}) has no '{missing}', which models of its family have: "
            f"choose the family that fits it."
        )
    # What comes before the first module runs the network: torch's own modules fail in torch alone.
    if not known and own and own[-1] > inside[0]:
        return None
    modules = root.named_modules() if isinstance(root, torch.nn.Module) else ()
    names = {id(each): name for name, each in modules}
    called = f"'{names[id(module)]}' ({kind})" if names.get(id(module)) else f"({kind})"
    place = f" at {_file_of(frame)}, line {line}" if known else ""
    return (
        f"the module {called} of the network fails{place}: {type(error).__name__}: {error}: "
        f"correct it, or how the study says to build it."
    )


def _is_of_networks(file: Path) -> bool:
    """Tell whether a file may be of a network: one of others, or of a family."""
    return not file.is_relative_to(HERE) or file.is_relative_to(FAMILIES)


def _records(frame: FrameType) -> bool:
    return frame.f_code.co_name in ("__torch_dispatch__", "__torch_function__")


def _file_of(frame: FrameType) -> Path:
    return Path(frame.f_code.co_filename)
