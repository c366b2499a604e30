"""Where in a checkpoint file the weights are: training codes save them beside much else."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from vitscope.errors import VitscopeError, first_of, quoted

StateDict = dict[str, Tensor]

# Averaged weights are the ones that training codes evaluate and publish: they come first. Of a
# student and a teacher the teacher is the average; where it is another network, it does not fit.
WRAPPERS = (
    "state_dict_ema",
    "model_ema",
    "ema",
    "params_ema",
    "teacher",
    "state_dict",
    "model_state_dict",
    "model",
    "net",
    "params",
    "module",
    "student",
)
DEEPEST_NESTING = 4
# How many entries of a file a message is made from, and how many it names.
MOST_ENTRIES = 100
SHOWN = 8
GIVE = "give the file of a state dict"


def dense_tensors(loaded: object) -> StateDict:
    """Return the weights that an entry holds itself."""
    if not isinstance(loaded, Mapping):
        return {}
    return {
        name: value.detach()
        for name, value in loaded.items()
        if isinstance(name, str) and isinstance(value, Tensor) and value.layout is torch.strided
    }


def find_weights(loaded: object, key: str | None, where: str) -> dict[str, StateDict]:
    """Return the weights of a file by the entries that hold them, what is averaged first.

    With a `key`, only what it names is looked at.
    """
    entry = loaded if key is None else _entry(loaded, key, where)
    found = _innermost(entry, key or "")
    if not found:
        inside = "" if key is None else f" in its entry {quoted(key)}"
        raise VitscopeError(f"{where} holds no weights{inside}: {_advice(loaded)}.")
    return found


def entries_with_weights(loaded: object) -> list[str]:
    """Return the entries of a file that hold weights, and how many, for a message."""
    return _in_words({name: count for name, count in _counts(loaded).items() if count})


def _counts(loaded: object) -> dict[str, int]:
    """Return the entries of a file that hold weights, and all that it holds itself."""
    found: dict[str, int] = {}
    seen: set[int] = set()

    def look(value: object, place: str, depth: int) -> None:
        if not isinstance(value, Mapping) or id(value) in seen:
            return
        seen.add(id(value))
        for name, inner in value.items():
            if not isinstance(name, str) or isinstance(inner, Tensor) or len(found) >= MOST_ENTRIES:
                continue
            within, count = _join_names(place, name), len(dense_tensors(inner))
            if count or depth == 0:
                found[within] = count
            if depth < DEEPEST_NESTING:
                look(inner, within, depth + 1)

    look(loaded, "", 0)
    return found


def _in_words(counts: Mapping[str, int]) -> list[str]:
    """Return entries as a message tells them."""
    ends = {0: "", 1: " (1 weight)"}
    return [quoted(name) + ends.get(count, f" ({count} weights)") for name, count in counts.items()]


def _innermost(loaded: object, key: str) -> dict[str, StateDict]:
    """Return the innermost state dicts of a file, by where they are."""
    found: dict[str, StateDict] = {}
    seen: set[int] = set()

    def look(value: object, place: str, depth: int) -> None:
        if not isinstance(value, Mapping) or id(value) in seen:
            return
        seen.add(id(value))
        before = len(found)
        for wrapper in WRAPPERS if depth < DEEPEST_NESTING else ():
            look(value.get(wrapper), _join_names(place, wrapper), depth + 1)
        if len(found) == before and (tensors := dense_tensors(value)):
            found[place] = tensors

    look(loaded, key, 0)
    return found


def _entry(loaded: object, key: str, where: str) -> object:
    """Return the entry of a file that a key names, or the weights whose names begin with it."""
    inside, rest, names = loaded, key, list[str]()
    while isinstance(inside, Mapping):
        if rest in inside:
            return inside[rest]
        names = [name for name in inside if isinstance(name, str)]
        if within := [name for name in names if name.startswith(f"{rest}.")]:
            return {name.removeprefix(f"{rest}."): inside[name] for name in within}
        # Names may hold dots themselves.
        outer = max((name for name in names if rest.startswith(f"{name}.")), key=len, default=None)
        if outer is None:
            break
        inside, rest = inside[outer], rest.removeprefix(f"{outer}.")
    held = _held(_in_words(_counts(loaded)) or list(map(quoted, names)))
    raise VitscopeError(f"{where} has no entry {quoted(key)}: {held}correct `checkpoint.key`.")


def _advice(loaded: object) -> str:
    """Say what to do where no weights were found."""
    counts = _counts(loaded)
    what = "say with `checkpoint.key` which entry is meant" if any(counts.values()) else GIVE
    return f"{_held(_in_words(counts))}{what}"


def _held(names: Sequence[str]) -> str:
    return f"it holds {first_of(names, SHOWN)}: " if names else ""


def _join_names(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
