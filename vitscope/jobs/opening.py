"""What jobs open: a path, or in its place what is in memory already."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.data.building import open_split_file
from vitscope.data.split import Split

if TYPE_CHECKING:
    import torch
    from torch import nn


def open_network(
    checkpoint: Any,
    network: Mapping[str, Any],
    counted: Callable[[int], object] | None = None,
    proved_on: "torch.device | None" = None,
) -> "nn.Module":
    """Return the network with the weights of a converted checkpoint, or the one that is given.

    Where it is opened, `counted` is told of each batch how many images it has, and one two of whose
    passes differ is refused, if it is to be `proved_on` a device.
    """
    if not isinstance(checkpoint, str):
        given: nn.Module = checkpoint
        return given
    # Imported here: what opens no network takes no torch.
    from vitscope.networks.building.networks import count_images
    from vitscope.networks.checkpoints.conversion import load_model
    from vitscope.networks.running.predictions import refuse_unrepeatable

    opened = load_model(Path(checkpoint), network)
    if proved_on:
        refuse_unrepeatable(opened, network, proved_on)
    if counted:
        count_images(opened, counted)
    return opened


def origin_of(checkpoint: Any) -> dict[str, str]:
    """Return what a checkpoint is of, and the digest of its file; nothing where it is in memory."""
    if not isinstance(checkpoint, str):
        return {}
    from vitscope.files.tables import OF
    from vitscope.networks.checkpoints.conversion import read_origin

    origin = read_origin(Path(checkpoint))
    return {"checkpoint_sha256": origin["source_sha256"], OF: origin.get(OF, "")}


def open_images(images: Any) -> Split:
    """Return the images of a split, from their file or as they are given."""
    return images if isinstance(images, Split) else open_split_file(images)


def open_device(device: Any) -> "torch.device":
    """Return the device that a study wants, or the one that is given."""
    if not isinstance(device, str):
        given: torch.device = device
        return given
    from vitscope.networks.running.device import pick_device

    return pick_device(device)
