"""Read the tensors, and nothing else, in foreign checkpoints of torch.save or safetensors."""

import argparse
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from vitscope.errors import VitscopeError, first_of, quoted
from vitscope.files.tensors import CHECKSUMS, TensorFile
from vitscope.files.untrusted import bounded_memory, disguise_of
from vitscope.files.whole import sha256_of

StateDict = dict[str, Tensor]

# Keys that hold state dicts, in the order in which they are tried. Averaged weights come first,
# because training codes evaluate and publish these. A teacher comes before its student, because it
# usually is the average of the student; if it is another network, its weights do not fit.
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
# The maximum number of a file's entries whose weights are counted for a message.
MOST_ENTRIES = 100
# The maximum number of entries that a message names.
SHOWN = 8


def dense_foreign_tensors(loaded: object) -> StateDict:
    if not isinstance(loaded, Mapping):
        return {}
    return {
        name: value.detach()
        for name, value in loaded.items()
        if isinstance(name, str) and isinstance(value, Tensor) and value.layout is torch.strided
    }


def find_weights(loaded: object, key: str | None, where: str) -> dict[str, StateDict]:
    """Return the state dicts in a file, or in its entry `key`, by key, averaged weights first."""
    entry = loaded if key is None else _select_entry(loaded, key, where)
    found = _find_state_dicts(entry, key or "")
    if not found:
        inside = "" if key is None else f" in its entry {quoted(key)}"
        counts, what = _count_foreign_weights(loaded), "give the file of a state dict"
        if any(counts.values()):
            what = "say with `checkpoint.key` which entry is meant"
        raise VitscopeError(
            f"{where} holds no weights{inside}: {_held_entries(_entries_in_words(counts))}{what}."
        )
    return found


def _count_foreign_weights(loaded: object) -> dict[str, int]:
    found: dict[str, int] = {}
    seen: set[int] = set()

    def count_below(value: object, place: str, depth: int) -> None:
        if not isinstance(value, Mapping) or id(value) in seen:
            return
        seen.add(id(value))
        for name, inner in value.items():
            if not isinstance(name, str) or isinstance(inner, Tensor) or len(found) >= MOST_ENTRIES:
                continue
            within, count = _join_names(place, name), len(dense_foreign_tensors(inner))
            if count or depth == 0:
                found[within] = count
            if depth < DEEPEST_NESTING:
                count_below(inner, within, depth + 1)

    count_below(loaded, "", 0)
    return found


def _entries_in_words(counts: Mapping[str, int]) -> list[str]:
    ends = {0: "", 1: " (1 weight)"}
    return [quoted(name) + ends.get(count, f" ({count} weights)") for name, count in counts.items()]


def _find_state_dicts(loaded: object, key: str) -> dict[str, StateDict]:
    """Find the state dicts in nested `WRAPPERS`; return each by the dotted key that leads to it."""
    found: dict[str, StateDict] = {}
    seen: set[int] = set()

    def find_below(value: object, place: str, depth: int) -> None:
        if not isinstance(value, Mapping) or id(value) in seen:
            return
        seen.add(id(value))
        before = len(found)
        for wrapper in WRAPPERS if depth < DEEPEST_NESTING else ():
            find_below(value.get(wrapper), _join_names(place, wrapper), depth + 1)
        if len(found) == before and (tensors := dense_foreign_tensors(value)):
            found[place] = tensors

    find_below(loaded, key, 0)
    return found


def _select_entry(loaded: object, key: str, where: str) -> object:
    """Return the entry at a dotted key, or else the weights whose names begin with the key."""
    inside, rest, names = loaded, key, list[str]()
    while isinstance(inside, Mapping):
        if rest in inside:
            return inside[rest]
        names = [name for name in inside if isinstance(name, str)]
        if within := [name for name in names if name.startswith(f"{rest}.")]:
            return {name.removeprefix(f"{rest}."): inside[name] for name in within}
        # Names may contain dots, so follow the longest name that fits.
        outer = max((name for name in names if rest.startswith(f"{name}.")), key=len, default=None)
        if outer is None:
            break
        inside, rest = inside[outer], rest.removeprefix(f"{outer}.")
    held = _held_entries(
        _entries_in_words(_count_foreign_weights(loaded)) or list(map(quoted, names))
    )
    raise VitscopeError(f"{where} has no entry {quoted(key)}: {held}correct `checkpoint.key`.")


def _held_entries(names: Sequence[str]) -> str:
    return f"it holds {first_of(names, SHOWN)}: " if names else ""


def _join_names(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


PREFIXES = ("module.", "_orig_mod.")
# The maximum ratio of the size of all tensors to that of the file: weights hardly compress.
LARGEST_EXPANSION = 4
# A hundred times the number of tensors in a large network.
MOST_TENSORS = 50_000
LONGEST_HEADER = 200 * MOST_TENSORS  # bytes
# Classes to accept besides tensors and plain values: many training codes save their options, a
# namespace, with the model.
HARMLESS: list[Any] = [argparse.Namespace]
LONGEST_NAME = 500
# Dtypes that weights may have in a file, before they are cast to the dtypes of the model.
PLAIN = frozenset(
    {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    | {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool}
)


class WeightsPlace(NamedTuple):
    """Weights in a file, the key of their entry, and the prefix that was `before` their names."""

    key: str
    weights: StateDict
    before: str


class Foreign(NamedTuple):
    """A file's weights, in the order to try them, its SHA-256, and its entries for messages."""

    places: tuple[WeightsPlace, ...]
    sha256: str
    entries: tuple[str, ...]


def read_foreign(
    path: Path,
    label: str,
    sha256: str | None = None,
    *,
    key: str | None = None,
    ignore: Sequence[str] = (),
) -> Foreign:
    """Read the weights in a file of torch.save or safetensors, without running code from it."""
    _check_checkpoint_file(path, label)
    digest = sha256_of(path)
    if sha256 is not None and digest != sha256.lower():
        raise VitscopeError(
            f"{label}: {path} has the SHA-256 {digest} where the study says {sha256}: it is "
            f"another file or a damaged one, so get it again or correct the digest."
        )
    with bounded_memory(path):
        loaded = _load_checkpoint(path, label)
    where = f"{label}: {path}"
    found = find_weights(loaded, key, where)
    _check_foreign_ignore_patterns(ignore, found, where)
    places: list[WeightsPlace] = []
    for place, tensors in found.items():
        kept = {n: t for n, t in tensors.items() if not any(fnmatchcase(n, p) for p in ignore)}
        # Skip later places that have a fault, since only the first is sure to be used.
        with suppress(VitscopeError) if places else nullcontext():
            _check_foreign_tensors(kept, path, where)
            places.append(WeightsPlace(place, *_without_prefixes(kept)))
    held = {name: count for name, count in _count_foreign_weights(loaded).items() if count}
    return Foreign(tuple(places), digest, tuple(_entries_in_words(held)))


def _check_checkpoint_file(path: Path, label: str) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise VitscopeError(f"{label}: {path} {what}: give the path of a checkpoint file.")
    try:
        disguise = disguise_of(path)
    except OSError as error:
        raise VitscopeError(
            f"{label}: {path} cannot be read ({error.strerror}): make it readable."
        ) from error
    if path.stat().st_size == 0:
        raise VitscopeError(f"{label}: {path} is empty: get it again.")
    if disguise:
        raise VitscopeError(f"{label}: {path} is {disguise} and not a checkpoint: get it again.")


def _load_checkpoint(path: Path, label: str) -> object:
    with path.open("rb") as file:
        start = file.read(9)
    if start[8:] != b"{":
        return _load_torch_file(path, label, zipped=start.startswith(b"PK\x03\x04"))
    try:
        if int.from_bytes(start[:8], "little") > LONGEST_HEADER:
            raise ValueError("the length of the header")
        with safetensors.safe_open(path, "pt") as file:
            ours = CHECKSUMS in (file.metadata() or {})
        if ours:
            TensorFile(path).verify()
        return dict(safetensors.torch.load_file(path))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _damage_error(path, label) from error


def _damage_error(path: Path, label: str) -> VitscopeError:
    return VitscopeError(
        f"{label}: {path} is damaged or is not a checkpoint (a file of torch.save or "
        f"safetensors): get it again."
    )


def _load_torch_file(path: Path, label: str, zipped: bool) -> object:
    size = 0
    if zipped:
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except Exception as error:
            # Refuse the file, because torch might read members that Python does not list.
            raise _damage_error(path, label) from error
    if size > LARGEST_EXPANSION * path.stat().st_size:
        raise VitscopeError(
            f"{label}: {path} would expand to {size} bytes, which no weights do: do not use it, "
            f"and get the checkpoint from where it was published."
        )
    try:
        with torch.serialization.safe_globals(HARMLESS):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Damaged bytes make the reader fail in many different ways.
        foreign = re.search(r"GLOBAL ([\w.]+)", str(error))
        if foreign is None:
            raise _damage_error(path, label) from error
        raise VitscopeError(
            f"{label}: {path} holds {foreign[1]}, which could run code when it is read: save the "
            f"weights alone, with torch.save(model.state_dict(), path) or as safetensors."
        ) from None


def _check_foreign_ignore_patterns(
    ignore: Sequence[str], places: Mapping[str, StateDict], where: str
) -> None:
    names = [name for tensors in places.values() for name in tensors]
    for pattern in ignore:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise VitscopeError(
                f"{where} has no name that matches {quoted(pattern)}: it has "
                f"{first_of(names, SHOWN)}: correct `checkpoint.ignore`."
            )
    (first, *_) = places.values()
    if all(any(fnmatchcase(name, pattern) for pattern in ignore) for name in first):
        raise VitscopeError(
            f"{where} has no weights that `checkpoint.ignore` leaves: give fewer patterns."
        )


def _check_foreign_tensors(weights: StateDict, path: Path, what: str) -> None:
    """Refuse tensors that do not hold plain numbers, or hold more than the file's size allows."""
    for name, tensor in weights.items():
        if len(name) > LONGEST_NAME:
            raise VitscopeError(
                f"{what} holds a tensor with a name of {len(name)} characters, which no weights "
                f"of a network have: give the file of a state dict."
            )
        if tensor.dtype not in PLAIN or tensor.is_meta or tensor.is_nested:
            shape = "ragged" if tensor.is_nested else "empty" if tensor.is_meta else "plain"
            raise VitscopeError(
                f"{what} holds {quoted(name)} as a {shape} tensor of {tensor.dtype}, which no "
                f"weights of a network are: save the state dict in float32."
            )
    size = sum(tensor.nbytes for tensor in weights.values())
    if size > LARGEST_EXPANSION * path.stat().st_size or len(weights) > MOST_TENSORS:
        raise VitscopeError(
            f"{what} holds {len(weights)} tensors of {size} bytes in all, more than a file of its "
            f"size or any network can have: do not use it, and get it again."
        )


def _without_prefixes(weights: StateDict) -> tuple[StateDict, str]:
    """Drop prefixes of DataParallel and torch.compile from all names; return the prefixes, too."""
    before = ""
    for _ in range(DEEPEST_NESTING):
        shared = next((p for p in PREFIXES if all(name.startswith(p) for name in weights)), "")
        weights = {name.removeprefix(shared): value for name, value in weights.items()}
        before += shared
    return weights, before
