"""Robustness: how a model classifies images as they are and corrupted ones."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.corruptions import CLEAN, MEAN
from vitscope.corruptions.corrupted import Corrupted
from vitscope.data.split import Split, normalized
from vitscope.measures.classification.compute import summarized

if TYPE_CHECKING:
    from torch import Tensor


class View(NamedTuple):
    """The same images as every other view, seen in one way, in batches."""

    corruption: str
    severity: int
    batches: Iterator["Tensor"]


def clean_view(
    images: Split,
    rows: Sequence[int],
    batch_size: int,
    mean: Sequence[float],
    std: Sequence[float],
) -> View:
    """Return images as they are."""
    return View(CLEAN, 0, images.batches(rows, batch_size, mean, std))


def corrupted_views(
    corrupted: Corrupted, batch_size: int, mean: Sequence[float], std: Sequence[float]
) -> Iterator[View]:
    """Yield images under one corruption, a view for each severity."""
    for severity in corrupted.severities:
        images = corrupted.images(severity)
        yield View(corrupted.corruption, severity, _batches(images, batch_size, mean, std))


def _batches(
    images: npt.NDArray[np.uint8], batch_size: int, mean: Sequence[float], std: Sequence[float]
) -> Iterator["Tensor"]:
    for first in range(0, len(images), batch_size):
        yield normalized(images[first : first + batch_size], mean, std)


def scored(model: str, view: View, predictions: pd.DataFrame, classes: int) -> pd.DataFrame:
    """Return the row of a robustness table for the predictions of a view."""
    scores = summarized(predictions, classes)
    told = {key: scores[key] for key in ("accuracy", "nll", "ece")}
    return pd.DataFrame(
        {
            "model": model,
            "corruption": view.corruption,
            "severity": view.severity,
            "images": len(predictions),
            **told,
        },
        index=[0],
    )


def corruption_error(table: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of one model by corruption, mean over severities, and their mean."""
    clean = table["corruption"] == CLEAN
    clean_error = 1 - table.loc[clean, "accuracy"].item()
    accuracy = table[~clean].groupby("corruption", sort=False)["accuracy"].mean()
    error = 1 - accuracy
    error[MEAN] = error.mean()
    return pd.DataFrame(
        {
            "model": table["model"].iloc[0],
            "corruption": error.index,
            "images": table["images"].iloc[0],
            "clean_error": clean_error,
            "error": error.to_numpy(),
            "relative_error": error.to_numpy() - clean_error,
        }
    )
