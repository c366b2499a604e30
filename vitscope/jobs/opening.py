"""Open the inputs of jobs and of measures, from paths or from objects in memory."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from vitscope.data.building import open_split_file
from vitscope.data.split import Split, origin_and_rows
from vitscope.files.pairs import PREFIXES
from vitscope.files.tables import (
    OF,
    check_file_model,
    read_metadata,
    read_warnings,
    warning_metadata,
)
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.jobs.job import Files, Resources, Values
from vitscope.jobs.networks import INTERVENES
from vitscope.measures import given
from vitscope.networks.finding.cut_points import BLOCKS, read_cut_points
from vitscope.networks.running.prediction_table import PREDICTIONS, read_labelled_predictions
from vitscope.settings.snapshots import END
from vitscope.training.history import HISTORY

if TYPE_CHECKING:
    import torch
    from torch import nn


def open_network(
    checkpoint: Any,
    network: Mapping[str, Any],
    proved_on: "torch.device | None" = None,
) -> "nn.Module":
    """Build a network with the weights of a converted checkpoint; return a given network as it is.

    If `proved_on` is a device, refuse a network whose results differ between two passes on it.
    """
    if not isinstance(checkpoint, str):
        in_memory: nn.Module = checkpoint
        return in_memory
    from vitscope.networks.checkpoints.conversion import load_converted_model
    from vitscope.networks.running.predictions import refuse_unrepeatable_predictions

    opened = load_converted_model(Path(checkpoint), network)
    if proved_on:
        refuse_unrepeatable_predictions(opened, network, proved_on)
    return opened


def origin_of_opened_checkpoint(checkpoint: Any) -> dict[str, str]:
    """Return the digest and the model of a checkpoint file; {} if the network is in memory."""
    if not isinstance(checkpoint, str):
        return {}
    origin = TensorFile(checkpoint).metadata
    return {"checkpoint_sha256": origin["source_sha256"], OF: origin.get(OF, "")}


def open_images(images: Any) -> Split:
    """Return the images of a split, opened if `images` is a path."""
    return images if isinstance(images, Split) else open_split_file(images)


def open_job_device(device: Any) -> "torch.device":
    """Return the device that a study's setting names; a torch device is returned as it is."""
    from vitscope.networks.running.device import pick_device

    found: torch.device = pick_device(device) if isinstance(device, str) else device
    return found


@dataclass(frozen=True)
class Opened:
    """The input of a measure, and what is written with its table.

    `given` is the input, and `origin` the metadata of the table. `named` has the values of columns
    that name what all rows are about. `rows` lists the rows of the split whose feature maps are
    measured, if any. `changed` is entered to measure: it makes the interventions in the network.
    """

    given: Any
    origin: Mapping[str, str]
    named: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[int] | None = None
    changed: AbstractContextManager[None] = field(default_factory=nullcontext)


def open_latents(inputs: Files, values: Values, resources: Resources) -> Opened:
    latents = TensorFile(inputs["latents"])
    origin, rows = origin_and_rows(latents.metadata)
    found = given.OnLatents(latents, values["first_image"], resources.threads)
    return Opened(found, origin, rows=rows)


def open_predictions(inputs: Files, values: Values, resources: Resources) -> Opened:
    """Open a model's predictions; where labels matter, leave out images without a label."""
    predictions, images = inputs["predictions"], open_images(inputs["images"])
    origin = read_metadata(predictions)
    check_file_model(predictions, origin.get(OF), values["model"])
    by_label = values["by_label"]
    found = (
        read_labelled_predictions(predictions, images)
        if by_label
        else PREDICTIONS.read(predictions)
    )
    return Opened(given.OnPredictions(values["model"], found, images), origin)


def open_model(inputs: Files, values: Values, resources: Resources) -> Opened:
    """Open a model, the images that it is measured on, and whatever else the measure reads."""
    from vitscope.corruptions.corrupted_images import CorruptedImages
    from vitscope.training.batches import AugmentedImages

    images, blocks = open_images(inputs["images"]), inputs["blocks"]
    predictions, alike = inputs.get("predictions"), inputs.get("alike")
    corruptions = values["settings"]["corruptions"] if "corrupted" in inputs else []
    corrupted = [Path(inputs["corrupted"], f"{name}.safetensors") for name in corruptions]
    network, device, changed = open_running(inputs, values, resources, not values["part"])
    found = given.OnModel(
        model=values["model"],
        network=network,
        cut_points=read_cut_points(blocks),
        images=images,
        device=device,
        settings=values["network"],
        batch_size=values["images_at_once"],
        blocks=BLOCKS.read(blocks),
        predictions=read_labelled_predictions(predictions, images) if predictions else None,
        corrupted=[*map(CorruptedImages, corrupted)],
        alike=AugmentedImages(alike) if alike else None,
    )
    origin = {"data_sha256": images.digest, **origin_of_opened_checkpoint(inputs["checkpoint"])}
    origin |= warning_metadata(read_warnings(filter(None, [predictions, blocks])))
    if found.alike:
        origin["training_sha256"] = found.alike.metadata["data_sha256"]
    return Opened(found, origin, changed=changed)


def open_line(inputs: Files, values: Values, resources: Resources) -> Opened:
    """Open models, the images that what is between them is measured on, and augmented ones."""
    from vitscope.training.batches import AugmentedImages

    opened = open_model(inputs, values, resources)
    checkpoints, origin = inputs["other_checkpoints"], dict(opened.origin)
    others = [*map(open_network, checkpoints, values["other_networks"])]
    augmented = AugmentedImages(path) if (path := inputs.get("augmented")) else None
    found = given.OnLine(opened.given, values["others"], others, augmented)
    for prefix, checkpoint in zip(PREFIXES[1:], checkpoints, strict=False):
        of_other = origin_of_opened_checkpoint(checkpoint)
        origin |= {f"{prefix}{key}": fact for key, fact in of_other.items()}
    if augmented:
        origin["training_sha256"] = augmented.metadata["data_sha256"]
    return Opened(found, origin)


def open_loss(inputs: Files, values: Values, resources: Resources) -> Opened:
    """Open a model as it was at a snapshot, with augmented training images."""
    from vitscope.training.batches import AugmentedImages

    images, points = AugmentedImages(inputs["images"]), read_cut_points(inputs["blocks"])
    network, device, _ = open_running(inputs, values, resources, not values["part"], counted=False)
    drawn_from = open_images(inputs["drawn_from"]) if "drawn_from" in inputs else None
    found = given.OnLoss(network, images, device, points, resources.say_of_it, drawn_from)
    snapshot = values["snapshot"]
    what = "checkpoint" if snapshot == END else f"snapshot {snapshot}"
    of_network = origin_of_opened_checkpoint(inputs["checkpoint"])
    origin = {key.replace("checkpoint", what): fact for key, fact in of_network.items()}
    named = {key: values[key] for key in ("model", "snapshot")}
    return Opened(found, {"data_sha256": images.metadata["data_sha256"], **origin}, named)


def open_network_alone(inputs: Files, values: Values, resources: Resources) -> Opened:
    network = open_network(inputs["checkpoint"], values["network"])
    found = given.OnNetwork(values["model"], network, values["network"])
    return Opened(found, origin_of_opened_checkpoint(inputs["checkpoint"]))


def open_weights(inputs: Files, values: Values, resources: Resources) -> Opened:
    """Open the history of a model's training or, if there is none, the snapshots in order."""
    if history := inputs.get("history"):
        found = given.OnWeights(values["model"], history=HISTORY.read(history))
        return Opened(found, {"history_sha256": sha256_of(history)})
    snapshots = [TensorFile(path) for path in inputs["snapshots"]]
    found = given.OnWeights(values["model"], snapshots=snapshots)
    return Opened(found, {"checkpoint_sha256": snapshots[-1].metadata["source_sha256"]})


def open_running(
    inputs: Files, values: Values, resources: Resources, first: bool = True, counted: bool = True
) -> "tuple[nn.Module, torch.device, AbstractContextManager[None]]":
    """Open a network and its device, and the context in which its interventions are made.

    If `first`, check that two passes give the same results; if `counted`, count the images that
    pass through the network.
    """
    checkpoint, device = inputs["checkpoint"], open_job_device(values["device"])
    network = open_network(checkpoint, values["network"], device if first else None)
    changed = _open_interventions(network, inputs, values, device)
    if counted and isinstance(checkpoint, str):
        from vitscope.networks.building.networks import count_images_into_network

        count_images_into_network(network, resources.count)
    return network, device, changed


def _open_interventions(
    network: "nn.Module", inputs: Files, values: Values, device: "torch.device"
) -> AbstractContextManager[None]:
    if "interventions" not in values["network"]:
        return nullcontext()
    from vitscope.networks.running.intervening import intervening

    blocks, images = inputs["blocks"], open_images(inputs["images"])
    sizes = BLOCKS.read(blocks)[["height", "width"]].itertuples(index=False, name=None)
    about = values["network"], read_cut_points(blocks), [*sizes], images, device
    return intervening(network, resolve_name(INTERVENES)(network, *about))
