"""Convert a checkpoint to a safetensors file with a network's own names, and load such files."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import safetensors.torch
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, first_of, quoted
from vitscope.files.tables import OF
from vitscope.files.tensors import DTYPES, TensorFile, TensorWriter
from vitscope.networks.building.networks import (
    NetworkEntry,
    drawn_network,
    empty_network,
    fill,
    uninitialized_network,
)
from vitscope.networks.checkpoints.foreign import Foreign, StateDict, WeightsPlace, read_foreign
from vitscope.networks.checkpoints.translation import (
    SHOWN,
    Translated,
    check_translated_names,
    classifier_names,
    find_layout,
    is_of_hugging_face,
    layout_suits,
    translate,
)

_FILE_DTYPES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def write_weights(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a state dict; the same weights and metadata always give the same bytes."""
    # The safetensors library would write the metadata in a different order in each process.
    tensors = {
        name: (_converted_dtype(name, tensor), tuple(tensor.shape))
        for name, tensor in weights.items()
    }
    with TensorWriter(path, tensors, metadata) as writer:
        for name, tensor in weights.items():
            writer.write(name, 0, _converted_array(name, tensor))


def sha256_of_weights(weights: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, tensor in weights.items():
        digest.update(f"{name} {_converted_dtype(name, tensor)} {tuple(tensor.shape)}\n".encode())
        digest.update(_converted_array(name, tensor).tobytes())
    return digest.hexdigest()


def _converted_dtype(name: str, tensor: Tensor) -> str:
    if tensor.dtype not in _FILE_DTYPES:
        raise VitscopeError(
            f"The network holds {name} as {tensor.dtype}, which is not measured: build it in "
            f"float32."
        )
    return _FILE_DTYPES[tensor.dtype]


def _converted_array(name: str, tensor: Tensor) -> npt.NDArray[Any]:
    tensor = tensor.contiguous()
    raw = tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor
    array: npt.NDArray[Any] = raw.numpy()
    return array.astype(DTYPES[_converted_dtype(name, tensor)], copy=False)


def load_converted_model(path: Path, network: NetworkEntry) -> nn.Module:
    """Build a network in evaluation mode, with the weights of a converted checkpoint."""
    # Switch off fused blocks of `nn.TransformerEncoder` in all jobs: they hide the residual stream.
    torch.backends.mha.set_fastpath_enabled(False)
    TensorFile(path).verify()
    weights = safetensors.torch.load_file(path)
    model = uninitialized_network(network)
    check_translated_names(weights, model.state_dict(), network, f"{network['family']}: {path}")
    return fill(model, weights)


def _refuse_quantized_weights(
    weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: str
) -> None:
    """Refuse integers for weights with a point, since only their scales make weights of them."""
    whole = [
        name
        for name, tensor in wanted.items()
        if tensor.is_floating_point() and not weights[name].is_floating_point()
    ]
    if whole:
        kind = str(weights[whole[0]].dtype).removeprefix("torch.")
        raise VitscopeError(
            f"{where} holds {first_of([*map(quoted, whole)], 3)} as {kind}, where the network has "
            f"numbers with a point, as where weights are quantized: give the weights before that."
        )


def convert(
    source: Path,
    network: NetworkEntry,
    target: Path,
    *,
    label: str,
    origin: str,
    sha256: str | None = None,
    key: str | None = None,
    ignore: Sequence[str] = (),
) -> None:
    """Convert a foreign file: read its entry `key`, without the weights that match `ignore`."""
    foreign = read_foreign(source, label, sha256, key=key, ignore=ignore)
    model = empty_network(network)
    place, translated = _choose_weights_to_convert(foreign, network, model)
    where, family = f"{label}: {source}", network["family"]
    weights, wanted = translated.weights, model.state_dict()
    if family != "hf" and is_of_hugging_face(place.weights) and not is_of_hugging_face(wanted):
        raise VitscopeError(
            f"{where} has the names of a network of Hugging Face, which no model of the family "
            f"{quoted(family)} has: use `family: hf`, with a `repository` or a `folder` as `arch`."
        )
    _print_conversion_choice(place, foreign, translated, where)
    named = {id(tensor): place.before + name for name, tensor in place.weights.items()}
    about = _describe_failed_conversion(place, foreign, network, model)
    check_translated_names(weights, wanted, network, where, named=named, about=about)
    _refuse_quantized_weights(weights, wanted, where)
    # Use the order and the dtypes of the network.
    fitted = {name: weights[name].to(tensor.dtype) for name, tensor in wanted.items()}
    _check_finite_weights(fitted, where)
    metadata = _conversion_metadata(network, model, label, origin, foreign.sha256)
    if place.key:
        metadata["weights"] = place.key
    if translated.by:
        metadata["translation"] = translated.by
    write_weights(target, fitted, metadata)


def convert_made(network: NetworkEntry, target: Path, *, label: str, origin: str) -> None:
    """Write the weights of a network that a user's function makes, drawn with a fixed seed."""
    model = drawn_network(network)
    weights = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite_weights(weights, label)
    write_weights(
        target,
        weights,
        _conversion_metadata(network, model, label, origin, sha256_of_weights(weights)),
    )


def _conversion_metadata(
    network: NetworkEntry, model: nn.Module, label: str, origin: str, sha256: str
) -> dict[str, str]:
    return {
        OF: label,
        "source": origin,
        "source_sha256": sha256,
        "arch": json.dumps(network["arch"], sort_keys=True),
        "classes": json.dumps(network["classes"]),
        "family": str(network["family"]),
        "image_size": str(network["image_size"]),
        "parameters": str(sum(parameter.numel() for parameter in model.parameters())),
    }


def _choose_weights_to_convert(
    foreign: Foreign, network: NetworkEntry, model: nn.Module
) -> tuple[WeightsPlace, Translated]:
    classifier = classifier_names(network) if network["classes"] is None else ()
    found = []
    for place in foreign.places:
        found.append((place, translate(place.weights, model, classifier)))
        if found[-1][1].fits:
            return found[-1]
    return found[0]


def _print_conversion_choice(
    place: WeightsPlace, foreign: Foreign, translated: Translated, where: str
) -> None:
    others = [quoted(each.key) for each in foreign.places if each is not place]
    if others:
        print(
            f"{where} holds weights more than once: those in {quoted(place.key)} are read, those "
            f"in {', '.join(others)} are not."
        )
    if translated.by:
        print(f"{where} has the names of {translated.by}, which are translated.")
    if translated.left_out:
        names = [place.before + name for name in translated.left_out]
        print(f"{where} holds what the network has no use for: {first_of(names, SHOWN)}.")


def _check_finite_weights(weights: StateDict, what: str) -> None:
    for name, tensor in weights.items():
        if not torch.isfinite(tensor).all():
            raise VitscopeError(
                f"{what} holds values in {name} that are not finite: give a checkpoint of a "
                f"training that did not diverge."
            )


def _describe_failed_conversion(
    place: WeightsPlace, foreign: Foreign, network: NetworkEntry, model: nn.Module
) -> str:
    """Describe the names of weights that do not fit, and the entries of their file."""
    about = ""
    layout = find_layout(place.weights)
    if layout is not None:
        about += f"; its names are those of {layout.name}"
        if not layout_suits(layout, model):
            about += f", which no model of the family {quoted(network['family'])} has"
    if len(foreign.entries) > 1:
        held = first_of(foreign.entries, SHOWN)
        about += f"; the file holds {held}, of which `checkpoint.key` chooses"
    return about
