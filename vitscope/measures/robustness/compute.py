"""Robustness: how a model classifies images as they are and corrupted ones."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.corruptions import CLEAN
from vitscope.corruptions.corrupted import CorruptedImages
from vitscope.data.split import known_labels, normalize
from vitscope.measures.given import OnModel
from vitscope.measures.scores import scores_of
from vitscope.networks.running.predictions import predict, warn_about_labels

if TYPE_CHECKING:
    from torch import Tensor


class View(NamedTuple):
    """The images in batches, clean or under one corruption of one severity."""

    corruption: str
    severity: int
    batches: Iterator["Tensor"]


def corrupted_views(
    corrupted: CorruptedImages, batch_size: int, mean: Sequence[float], std: Sequence[float]
) -> Iterator[View]:
    """Yield a view for each severity of a corruption."""
    for severity in corrupted.severities:
        images = corrupted.images(severity)
        yield View(
            corrupted.corruption, severity, _normalized_batches(images, batch_size, mean, std)
        )


def _normalized_batches(
    images: npt.NDArray[np.uint8], batch_size: int, mean: Sequence[float], std: Sequence[float]
) -> Iterator["Tensor"]:
    for first in range(0, len(images), batch_size):
        yield normalize(images[first : first + batch_size], mean, std)


def measure_robustness(given: OnModel, corruptions: Sequence[str], clean: bool) -> pd.DataFrame:
    """Return the scores of a model under some corruptions, and first on clean images if wanted.

    Each row also tells for every image whether its class is found.
    """
    rows = given.corrupted[0].rows.tolist()
    labels = known_labels(given.images, rows)
    loading = (given.batch_size, given.settings["mean"], given.settings["std"])
    views = [view for each in given.corrupted for view in corrupted_views(each, *loading)]
    if clean:
        views.insert(0, View(CLEAN, 0, given.images.batches(rows, *loading)))
    rows_of_table = []
    for view in views:
        predictions = predict(given.network, view.batches, labels, given.device)
        if view.corruption == CLEAN:
            given.warnings.extend(warn_about_labels(given.model, given.images, predictions))
        scores = scores_of(predictions, given.settings["classes"])
        facts = {"corruption": view.corruption, "severity": view.severity, "images": len(labels)}
        right = (predictions["label"] == predictions["prediction"]).to_numpy()
        rows_of_table.append({"model": given.model, **facts, **scores, "right": right})
    return pd.DataFrame(rows_of_table)
