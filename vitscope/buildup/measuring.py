"""How good a network of a build-up is: how many test images it classifies correctly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import safetensors.torch
import torch

from vitscope.data.image_rows import known_labels
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.networks.building.networks import empty_network, fill
from vitscope.networks.checkpoints.translation import misfits
from vitscope.networks.running.predictions import predict


def refuse_missing(network: Mapping[str, Any], where: str, weights: Path | None = None) -> NoReturn:
    """Refuse to go on without the weights of a network; `weights` belong to another."""
    found = "" if weights is None else f" ({weights} are of another)"
    raise VitscopeError(
        f"{where}: there are no weights of the network that is tried next, with "
        f"{network['arch']['attention']} MSA blocks in its stages{found}: leave the key out, so "
        f"that it is trained."
    )


def measure(
    weights: Path,
    network: Mapping[str, Any],
    images: Split,
    *,
    where: str,
    batch_size: int,
    device: torch.device,
) -> pd.DataFrame:
    """Return the table of a step, one row, for all images of a split.

    `where` is the place in the study that an error names if the weights do not fit.
    """
    model = empty_network(network)
    TensorFile(weights).verify()
    found = safetensors.torch.load_file(weights)
    if any(misfits(found, model.state_dict())):
        refuse_missing(network, where, weights)
    rows = range(len(images))
    predictions = predict(
        fill(model, found),
        images.batches(rows, batch_size, network["mean"], network["std"]),
        known_labels(images, rows),
        device,
    )
    return pd.DataFrame(
        {
            "parameters": [sum(parameter.numel() for parameter in model.parameters())],
            "images": [len(predictions)],
            "correct": [int((predictions["label"] == predictions["prediction"]).sum())],
        }
    )
