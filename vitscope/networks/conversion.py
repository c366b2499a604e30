"""Convert a checkpoint: the weights of a foreign file under a network's own names, in one file."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.empty import Network, empty_network
from vitscope.networks.family import StateDict, find_family
from vitscope.networks.foreign import DEEPEST_NESTING, read_foreign
from vitscope.networks.matching import check_names
from vitscope.networks.weights_file import sha256_of, write_weights


def convert(
    source: Path,
    network: Network,
    target: Path,
    *,
    label: str,
    origin: str,
    sha256: str | None = None,
) -> None:
    """Write the weights of a foreign file as the safetensors file of a network's own names.

    `origin` says in the metadata where the file came from.
    """
    foreign = read_foreign(source, label, sha256)
    if foreign.others:
        print(
            f"{label}: {source} holds weights more than once: those in '{foreign.place}' are "
            f"read, those in {', '.join(map(quoted, foreign.others))} are not."
        )
    model = empty_network(network)
    translated = _translated(foreign.weights, network, model)
    fitted = _fitted(translated, model.state_dict(), network, f"{label}: {source}")
    metadata = _about(network, model) | {"source": origin, "source_sha256": foreign.sha256}
    if foreign.place:
        metadata["weights"] = foreign.place
    write_weights(target, fitted, metadata)


def convert_made(network: Network, target: Path, *, label: str, origin: str) -> None:
    """Write the weights that a user's function gives its network, for all that reads a checkpoint.

    What it draws by torch's own random numbers is the same every time.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model = find_family(network["family"]).build(
            network["arch"], network["classes"], network["image_size"], len(network["mean"])
        )
    weights = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite(weights, label)
    metadata = _about(network, model) | {"source": origin, "source_sha256": sha256_of(weights)}
    write_weights(target, weights, metadata)


def _about(network: Network, model: nn.Module) -> dict[str, str]:
    """Return what the metadata of a checkpoint say of its network."""
    return {
        "arch": json.dumps(network["arch"], sort_keys=True),
        "classes": str(network["classes"]),
        "family": str(network["family"]),
        "image_size": str(network["image_size"]),
        "parameters": str(sum(parameter.numel() for parameter in model.parameters())),
    }


def _is_counter(name: str) -> bool:
    """Tell whether a weight counts batches: old checkpoints lack it, and inference ignores it."""
    return name.endswith(".num_batches_tracked")


def _translated(weights: StateDict, network: Network, model: nn.Module) -> StateDict:
    """Return weights under the network's own names.

    A network may be saved as a part of something larger, so that its names begin with `backbone.`
    or the like. We drop the first word that most names begin with, up to four times, and keep the
    attempt that finds most names of the network. Two weights must not get the same name by that.
    """
    needed = {name for name in model.state_dict() if not _is_counter(name)}
    translate = find_family(network["family"]).translate
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
    check_names(weights, wanted, network, what)
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
