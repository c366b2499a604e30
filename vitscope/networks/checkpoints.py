"""Checkpoints: read what others wrote without running it, convert it once, load it.

A foreign file is read as tensors only. What a model is loaded from is always a safetensors file
of the model's own keys, with the digest of its source in its metadata.
"""

import argparse
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.files.disguises import disguise_of
from vitscope.files.tensors import CHECKSUMS, DTYPES, TensorFile, TensorWriter
from vitscope.files.whole import sha256_of
from vitscope.networks import families
from vitscope.networks.empty import build_empty, fill

StateDict = dict[str, Tensor]
Network = Mapping[str, Any]

# Averaged weights are the ones that training codes evaluate and publish: they come first.
WRAPPERS = ("state_dict_ema", "model_ema", "ema", "state_dict", "model")
PREFIXES = ("module.", "_orig_mod.")
DEEPEST_NESTING = 4
# Weights do not compress, and torch.save does not try.
LARGEST_EXPANSION = 4
# Besides tensors and plain values. Many codes save their options, a bare namespace, with the model.
HARMLESS: list[Any] = [argparse.Namespace]
SHOWN = 4
LONGEST_NAME = 500
# What the weights of a network may be before they get the types of the model.
PLAIN = frozenset(
    {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    | {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool}
)


class Foreign(NamedTuple):
    """The weights of a foreign file, its SHA-256, and where in the file they are.

    `place` is empty if the file is a state dict; `others` are places that were passed over.
    """

    weights: StateDict
    sha256: str
    place: str
    others: tuple[str, ...]


def read_foreign(path: Path, label: str, sha256: str | None = None) -> Foreign:
    """Read the weights of a file of torch.save or safetensors.

    Nothing in the file is run; if it should have another SHA-256, it is not even read.
    """
    _check_readable(path, label)
    digest = sha256_of(path)
    if sha256 is not None and digest != sha256.lower():
        raise VitscopeError(
            f"{label}: {path} has the SHA-256 {digest} where the study says {sha256}: it is "
            f"another file or a damaged one, so get it again or correct the digest."
        )
    loaded = _load_safetensors(path, label) if _is_safetensors(path) else _load_torch(path, label)
    inner, place, others = _unwrapped(loaded)
    weights = _without_prefixes(_dense_tensors(inner))
    if not weights:
        raise VitscopeError(f"{label}: {path} holds no weights: give the file of a state dict.")
    _check_plain(weights, f"{label}: {path}")
    return Foreign(weights, digest, place, others)


def _check_readable(path: Path, label: str) -> None:
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


def _is_safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def _damaged(path: Path, label: str) -> VitscopeError:
    return VitscopeError(
        f"{label}: {path} is damaged or is not a checkpoint (a file of torch.save or "
        f"safetensors): get it again."
    )


def _load_safetensors(path: Path, label: str) -> StateDict:
    try:
        with safetensors.safe_open(path, "pt") as file:
            ours = CHECKSUMS in (file.metadata() or {})
        if ours:
            TensorFile(path).verify()
        return dict(safetensors.torch.load_file(path))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _damaged(path, label) from error


def _check_expansion(path: Path, label: str) -> None:
    """Refuse a zip archive whose members are much larger than the file itself."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except Exception:
        # The reader of torch says what is wrong with a damaged archive.
        return
    if size > LARGEST_EXPANSION * path.stat().st_size:
        raise VitscopeError(
            f"{label}: {path} would expand to {size} bytes, which no weights do: do not use it, "
            f"and get the checkpoint from where it was published."
        )


def _load_torch(path: Path, label: str) -> object:
    _check_expansion(path, label)
    try:
        with torch.serialization.safe_globals(HARMLESS):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Damaged bytes make the reader fail in every way there is.
        foreign = re.search(r"GLOBAL ([\w.]+)", str(error))
        if foreign is None:
            raise _damaged(path, label) from error
        raise VitscopeError(
            f"{label}: {path} holds {foreign[1]}, which could run code when it is read: save the "
            f"weights alone, with torch.save(model.state_dict(), path) or as safetensors."
        ) from None


def _unwrapped(loaded: object) -> tuple[object, str, tuple[str, ...]]:
    """Return the innermost state dict of what a training code saved, and its and others' places."""
    place, others = "", []
    for _ in range(DEEPEST_NESTING):
        if not isinstance(loaded, Mapping):
            break
        found = [w for w in WRAPPERS if isinstance(loaded.get(w), Mapping)]
        if not found:
            break
        others += [f"{place}{other}" for other in found[1:] if _dense_tensors(loaded[other])]
        loaded, place = loaded[found[0]], f"{place}{found[0]}."
    return loaded, place.removesuffix("."), tuple(others)


def _dense_tensors(loaded: object) -> StateDict:
    if not isinstance(loaded, Mapping):
        return {}
    return {
        name: value.detach()
        for name, value in loaded.items()
        if isinstance(name, str) and isinstance(value, Tensor) and value.layout is torch.strided
    }


def _check_plain(weights: StateDict, what: str) -> None:
    """Refuse tensors without values, or with values that are no plain numbers."""
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


def _without_prefixes(weights: StateDict) -> StateDict:
    """Drop what wrappers of a model, for several devices or compiled, put before every key."""
    for _ in range(DEEPEST_NESTING):
        shared = next((p for p in PREFIXES if all(name.startswith(p) for name in weights)), "")
        weights = {name.removeprefix(shared): value for name, value in weights.items()}
    return weights


def _empty(network: Network) -> nn.Module:
    return build_empty(
        network["family"], network["arch"], network["classes"], network["image_size"]
    )


def convert(
    source: Path,
    network: Network,
    target: Path,
    *,
    label: str,
    origin: str,
    sha256: str | None = None,
) -> None:
    """Write the weights of a foreign file as the safetensors file of a network's own keys.

    `network` has the keys family, arch, classes and image_size; `origin` says in the metadata
    where the file came from.
    """
    foreign = read_foreign(source, label, sha256)
    if foreign.others:
        print(
            f"{label}: {source} holds weights more than once: those in '{foreign.place}' are "
            f"read, those in {', '.join(map(quoted, foreign.others))} are not."
        )
    model = _empty(network)
    translated = _translated(foreign.weights, network, model)
    fitted = _fitted(translated, model.state_dict(), network, f"{label}: {source}")
    metadata = {
        "arch": json.dumps(network["arch"], sort_keys=True),
        "classes": str(network["classes"]),
        "family": str(network["family"]),
        "image_size": str(network["image_size"]),
        "parameters": str(sum(parameter.numel() for parameter in model.parameters())),
        "source": origin,
        "source_sha256": foreign.sha256,
    }
    if foreign.place:
        metadata["weights"] = foreign.place
    write_weights(target, fitted, metadata)


def _is_counter(name: str) -> bool:
    """Tell a counter of batch normalization: old checkpoints lack them, inference has no use."""
    return name.endswith(".num_batches_tracked")


def _translated(weights: StateDict, network: Network, model: nn.Module) -> StateDict:
    """Return weights under the model's own keys.

    Training codes hold a model as a part of something larger: what stands before most names is
    taken off, as long as no two become the same, where more names of the model then are there.
    """
    needed = {name for name in model.state_dict() if not _is_counter(name)}
    translate = families.get(network["family"]).translate
    best = translate(weights, model)
    for _ in range(DEEPEST_NESTING):
        if needed <= best.keys():
            break
        ((outer, _),) = Counter(name.partition(".")[0] for name in weights).most_common(1)
        inner = {name.removeprefix(f"{outer}."): value for name, value in weights.items()}
        if len(inner) < len(weights):
            break
        weights = inner
        best = min(best, translate(weights, model), key=lambda found: len(needed - found.keys()))
    return best


def _fitted(
    weights: StateDict, wanted: Mapping[str, Tensor], network: Network, what: str
) -> StateDict:
    """Return the wanted weights in the model's order and types, or say what does not fit."""
    counters = [name for name in wanted if _is_counter(name)]
    weights = {name: torch.zeros_like(wanted[name], device="cpu") for name in counters} | weights
    _check_names(weights, wanted, network, what)
    fitted = {name: weights[name].to(tensor.dtype) for name, tensor in wanted.items()}
    for name, tensor in fitted.items():
        if not torch.isfinite(tensor).all():
            raise VitscopeError(
                f"{what} holds values in {name} that are not finite: give a checkpoint of a "
                f"training that did not diverge."
            )
    return fitted


def _check_names(
    weights: StateDict, wanted: Mapping[str, Tensor], network: Network, what: str
) -> None:
    other = [
        f"{name} (has {_shape(weights[name])}, needs {_shape(tensor)})"
        for name, tensor in wanted.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    problems = {
        "missing": [name for name in wanted if name not in weights],
        "left over": [name for name in weights if name not in wanted],
        "of another shape": other,
    }
    found = "; ".join(f"{kind}: {_shortened(names)}" for kind, names in problems.items() if names)
    if not found:
        return
    missing = problems["missing"]
    if missing and not other and set(missing) <= _classifier(network, wanted):
        raise VitscopeError(
            f"{what} has no classifier that fits the model ({found}): measurements need one for "
            f"now, so give a checkpoint of a model that classifies."
        )
    raise VitscopeError(
        f"{what} does not fit the model ({found}): correct the family, the arch or the number of "
        f"classes, or `image_size` of the data set."
    )


def _classifier(network: Network, wanted: Mapping[str, Tensor]) -> set[str]:
    """Return the names of the weights whose shape depends on the number of classes."""
    more = _empty({**network, "classes": network["classes"] + 1}).state_dict()
    return {name for name, tensor in wanted.items() if more[name].shape != tensor.shape}


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


def _shortened(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


_FILE_DTYPES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def write_weights(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a state dict; the same weights and metadata always give the same bytes."""
    # The writer of the safetensors library orders the metadata anew in each process.
    tensors = {
        name: (_FILE_DTYPES[tensor.dtype], tuple(tensor.shape)) for name, tensor in weights.items()
    }
    with TensorWriter(path, tensors, metadata) as writer:
        for name, tensor in weights.items():
            array = tensor.contiguous().numpy().astype(DTYPES[tensors[name][0]], copy=False)
            writer.write(name, 0, array)


def read_origin(path: Path) -> dict[str, str]:
    """Return the metadata of a converted checkpoint: `source`, `source_sha256` and others."""
    return TensorFile(path).metadata


def load_model(path: Path, network: Network) -> nn.Module:
    """Build a network and give it the weights of a converted checkpoint, ready for inference."""
    TensorFile(path).verify()
    weights = safetensors.torch.load_file(path)
    model = _empty(network)
    _check_names(weights, model.state_dict(), network, f"{network['family']}: {path}")
    return fill(model, weights)
