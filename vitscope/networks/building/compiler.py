"""Do without torch's compiler, which takes as long to import as all of torch."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def without_compiler() -> Iterator[None]:
    """Keep what runs in the block from importing the compiler only to switch it off.

    Who compiles a model later gets the real one.
    """
    compiler, utils = ModuleType("torch._dynamo"), ModuleType("torch._dynamo.utils")
    compiler.disable = lambda function, *_, **__: function  # type: ignore[attr-defined]
    utils.is_compile_supported = lambda _: False  # type: ignore[attr-defined]
    stand_ins = {module.__name__: module for module in (compiler, utils)}
    if not stand_ins.keys().isdisjoint(sys.modules):
        yield
        return
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]
