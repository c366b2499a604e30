"""The pickled batches of the CIFAR archives, read without running what they hold."""

import io
import pickle
import pickletools
from collections.abc import Callable
from typing import Any

import numpy as np

from vitscope.data.sources._cifar import PIXELS, Content, Pixels

# Some times as many as official batches have.
MOST_OPCODES = 1_000_000


class _Array:
    """Stands in for a pickled array: it keeps the bytes, and nothing of NumPy is called."""

    def __init__(self, *reconstruction: object) -> None:
        self._data = b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, _, _, by_column, data = state
        if by_column or not isinstance(data, bytes):
            raise ValueError("an array in an unknown order")
        self._data = data

    def values(self, rows: int) -> Pixels:
        """Return the images, a row each."""
        return np.frombuffer(self._data, np.uint8).reshape(rows, PIXELS)


class _Type:
    """Stands in for the types of a pickled array, which are known."""

    def __init__(self, *description: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


STAND_INS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): _Type,
}


class _Unpickler(pickle.Unpickler):
    """Builds plain values and stand-ins, and finds no other name."""

    def find_class(self, module: str, name: str, /) -> object:
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return STAND_INS[module, name]


def _check_memo(data: bytes) -> None:
    """Refuse a memo of more entries than there are bytes: memory is taken for all of them."""
    for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if number > MOST_OPCODES:
            raise pickle.UnpicklingError("it has more parts than an official batch")
        if "PUT" in opcode.name and not 0 <= int(argument or 0) <= len(data):
            raise pickle.UnpicklingError(f"it fills place {argument} of its memo")


def _unpickle(data: bytes) -> dict[bytes, Any]:
    try:
        _check_memo(data)
        value = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # Damaged or malicious bytes fail in every way there is.
        raise ValueError(f"a pickle that cannot be read safely: {error}") from error
    if not isinstance(value, dict):
        raise TypeError("a pickle that is no dictionary")
    return value


def read_pickled(members: list[bytes], names_key: bytes, labels_key: bytes) -> Content:
    """Read batches that are pickled dictionaries, with names and labels at these keys."""
    names, *batches = (_unpickle(member) for member in members)
    parts = []
    for batch in batches:
        pixels, labels = batch[b"data"], batch[labels_key]
        if not isinstance(pixels, _Array) or not _is_list(labels, int):
            raise TypeError("a batch without images or labels")
        parts.append((pixels.values(len(labels)), np.array(labels, np.int64)))
    classes = names[names_key]
    if not _is_list(classes, bytes):
        raise TypeError("classes without names")
    return [name.decode("ascii") for name in classes], parts


def _is_list(value: object, kind: type) -> bool:
    """Tell whether a value is a list of values of one type and no other."""
    return isinstance(value, list) and all(type(item) is kind for item in value)
