"""Convert a checkpoint: the weights of a foreign file under a network's own names, in one file."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from vitscope.errors import VitscopeError, first_of, quoted
from vitscope.files.tables import OF
from vitscope.networks.building.empty import Network, drawn_network, empty_network
from vitscope.networks.checkpoints.entries import StateDict
from vitscope.networks.checkpoints.foreign import Foreign, Place, read_foreign
from vitscope.networks.checkpoints.layouts import find_layout
from vitscope.networks.checkpoints.matching import SHOWN, check_names, classifier_names
from vitscope.networks.checkpoints.translation import Translated, suits, translate
from vitscope.networks.checkpoints.weights_file import sha256_of, write_weights


def convert(
    source: Path,
    network: Network,
    target: Path,
    *,
    label: str,
    origin: str,
    sha256: str | None = None,
    key: str | None = None,
    ignore: Sequence[str] = (),
) -> None:
    """Write the weights of a foreign file as the safetensors file of a network's own names.

    `origin` says in the metadata where the file came from; `key` and `ignore` which of its weights
    are meant.
    """
    foreign = read_foreign(source, label, sha256, key=key, ignore=ignore)
    model = empty_network(network)
    place, translated = _choose(foreign, network, model)
    where = f"{label}: {source}"
    _tell(place, foreign, translated, where)
    fitted = _fit(place, foreign, translated, network, model, where)
    metadata = _about(network, model, label, origin, foreign.sha256)
    if place.key:
        metadata["weights"] = place.key
    if translated.by:
        metadata["translation"] = translated.by
    write_weights(target, fitted, metadata)


def convert_made(network: Network, target: Path, *, label: str, origin: str) -> None:
    """Write the weights that a user's function gives its network, for all that reads a checkpoint.

    What it draws by torch's own random numbers is the same every time.
    """
    model = drawn_network(network)
    weights = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite(weights, label)
    write_weights(target, weights, _about(network, model, label, origin, sha256_of(weights)))


def _about(
    network: Network, model: nn.Module, label: str, origin: str, sha256: str
) -> dict[str, str]:
    """Return what the metadata of a checkpoint say of its network and its file."""
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


def _choose(foreign: Foreign, network: Network, model: nn.Module) -> tuple[Place, Translated]:
    """Return the first weights of a file that fit a network, or else the first."""
    classifier = classifier_names(network) if network["classes"] is None else ()
    found = []
    for place in foreign.places:
        found.append((place, translate(place.weights, model, classifier)))
        if found[-1][1].fits:
            return found[-1]
    return found[0]


def _tell(place: Place, foreign: Foreign, translated: Translated, where: str) -> None:
    """Say which weights of a file are read, who translated their names, and which have no use."""
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


def _fit(
    place: Place,
    foreign: Foreign,
    translated: Translated,
    network: Network,
    model: nn.Module,
    what: str,
) -> StateDict:
    """Return the weights of a model in its order and types, or say what does not fit."""
    weights, wanted = translated.weights, model.state_dict()
    named = {id(tensor): place.before + name for name, tensor in place.weights.items()}
    about = _describe(place, foreign, network, model)
    check_names(weights, wanted, network, what, named=named, about=about)
    fitted = {name: weights[name].to(tensor.dtype) for name, tensor in wanted.items()}
    _check_finite(fitted, what)
    return fitted


def _check_finite(weights: StateDict, what: str) -> None:
    for name, tensor in weights.items():
        if not torch.isfinite(tensor).all():
            raise VitscopeError(
                f"{what} holds values in {name} that are not finite: give a checkpoint of a "
                f"training that did not diverge."
            )


def _describe(place: Place, foreign: Foreign, network: Network, model: nn.Module) -> str:
    """Say of weights that do not fit what is known of them, and where in the file others are."""
    about = ""
    layout = find_layout(place.weights)
    if layout is not None:
        about += f"; its names are those of {layout.name}"
        if not suits(layout, model):
            about += f", which no model of the family {quoted(network['family'])} has"
    if len(foreign.entries) > 1:
        held = first_of(foreign.entries, SHOWN)
        about += f"; the file holds {held}, of which `checkpoint.key` chooses"
    return about
