"""Classify images of a split by a network, for the measures of predictions."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from torch import nn

from vitscope.data.image_rows import known_labels, rows_to_classify
from vitscope.data.split import Split
from vitscope.networks.running.label_doubts import warn_about_labels
from vitscope.networks.running.predictions import predict


def classify(
    name: str,
    network: nn.Module,
    images: Split,
    *,
    settings: Mapping[str, Any],
    selection: Mapping[str, Any],
    batch_size: int,
    device: torch.device,
    labels_are_truth: bool,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table of predictions on the selected images, and what makes them doubtful.

    Where labels are no truth, as where cues conflict, predictions that differ tell nothing.
    """
    rows = rows_to_classify(images, **selection)
    labels = known_labels(images, rows)
    batches = images.batches(rows, batch_size, settings["mean"], settings["std"])
    predictions = predict(network, batches, labels, device)
    warnings = warn_about_labels(name, images, predictions) if labels_are_truth else []
    return predictions.assign(image=rows), warnings
