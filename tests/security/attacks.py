"""Pickles that do harm where they are read without care; each writes a file, the canary.

They are written opcode by opcode, so that every way to name and to call something occurs.
"""

import pickle
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from tests.helpers.checkpoints import Runs
from tests.security.bombs import in_memory


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


def system(canary: Path) -> bytes:
    return called(named("os", "system"), text(shell(canary)))


def _memmap(canary: Path) -> bytes:
    """Name a class that opens a file, and what it is made with."""
    arguments = text(str(canary)) + text("uint8") + text("w+") + b"K\x00K\x01"
    return named("numpy", "memmap") + b"(" + arguments + b"t"


Attack = Callable[[Path], bytes]

# What runs where `pickle.loads` reads it.
HARMFUL: dict[str, Attack] = {
    "REDUCE of os.system": lambda c: program(system(c)),
    "protocol 0": lambda c: f"cos\nsystem\n(V{shell(c)}\ntR.".encode(),
    "eval": lambda c: program(called(named("builtins", "eval"), text(f"open({str(c)!r}, 'w')"))),
    "INST": lambda c: f"(V{shell(c)}\nios\nsystem\n.".encode(),
    "OBJ": lambda c: program(b"(" + named("os", "system") + text(shell(c)) + b"o"),
    "STACK_GLOBAL": lambda c: program(
        called(short("os") + short("system") + b"\x93", text(shell(c))), 4
    ),
    "STACK_GLOBAL of a dotted name": lambda c: program(
        called(short("pathlib") + short("os.system") + b"\x93", text(shell(c))), 4
    ),
    "TUPLE1": lambda c: program(named("os", "system") + text(shell(c)) + b"\x85R"),
    "NEWOBJ of a class that opens a file": lambda c: program(_memmap(c) + b"\x81"),
    "NEWOBJ_EX": lambda c: program(_memmap(c) + b"}\x92", 4),
    "BUILD that gives a partial its function": lambda c: program(
        called(
            called(named("functools", "partial"), named("builtins", "print"))
            + (b"(" + named("os", "system") + b"(" + text(shell(c)) + b"t}Ntb")
        )
    ),
    "an array of objects": lambda c: pickle.dumps(np.array([Runs(c)], dtype=object), 3),
    "a pickle in a storage of torch": lambda c: program(
        called(
            named("torch.storage", "_load_from_bytes"), raw(in_memory(partial(torch.save, Runs(c))))
        )
    ),
    "an exception with its arguments": lambda c: program(
        called(named("builtins", "Exception"), system(c))
    ),
    "a memo that hides the name": lambda c: program(
        text("os")
        + b"q\x000"
        + text("system")
        + b"q\x010"
        + called(b"h\x00h\x01\x93", text(shell(c))),
        4,
    ),
    "behind a dictionary of weights": lambda c: program(b"}" + text("weight") + system(c) + b"s"),
    "as a key": lambda c: program(b"}" + system(c) + b"K\x01s"),
}
