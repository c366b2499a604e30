"""Predictions: what a model says of each image, from which all of its scores follow."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from vitscope.errors import VitscopeError

TOP = 5
# What is said of an image by its label, and not where that is unknown.
BY_LABEL = ("label", "nll", "brier", "top5")


def scores_of_images(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Return what a predictions table holds of each image, from (N, classes) logits and labels.

    Of classes that are equally probable the first is predicted, and none keeps another from the
    top.
    """
    log_probability = logits.double().log_softmax(1)
    probability = log_probability.exp()
    of_label = labels[:, None]
    error = probability - one_hot(labels, logits.shape[1])
    more_probable = (logits > logits.gather(1, of_label)).sum(1)
    return {
        "label": labels,
        "prediction": logits.argmax(1),
        "confidence": probability.amax(1),
        "nll": -log_probability.gather(1, of_label)[:, 0],
        "brier": error.square().sum(1),
        "top5": more_probable < TOP,
    }


def decide_among(logits: Tensor, outputs: Sequence[Sequence[int]] | None) -> Tensor:
    """Return the logits of wider classes, each of several `outputs`, from (N, outputs) logits.

    A class has the mean of the probabilities of its outputs, as in Geirhos et al. (2019), so that
    one of many outputs is no likelier for that. Without `outputs`, logits are what they are.
    """
    if outputs is None:
        return logits
    log_probability = logits.double().log_softmax(1)
    means = [log_probability[:, [*each]].logsumexp(1) - math.log(len(each)) for each in outputs]
    return torch.stack(means, dim=1)


def predict(
    model: nn.Module,
    batches: Iterable[Tensor],
    labels: npt.NDArray[np.int64],
    device: torch.device | None = None,
    outputs: Sequence[Sequence[int]] | None = None,
) -> pd.DataFrame:
    """Classify all images of `batches`, and return a row of scores for each.

    `outputs` are those of the network for each class, where these are not one each.
    """
    model = model.eval().to(device)
    scores: list[pd.DataFrame] = []
    first = 0
    with torch.inference_mode():
        for batch in batches:
            logits = model(batch.to(device)).cpu()
            _check_finite(model, logits, first)
            truth = torch.from_numpy(labels[first : first + len(batch)])
            columns = scores_of_images(decide_among(logits, outputs), truth.clamp_min(0))
            found = pd.DataFrame({key: value.numpy() for key, value in columns.items()})
            scores.append(_without_unknown(found, truth.numpy() < 0))
            first += len(batch)
    if first != len(labels):
        raise ValueError(f"got {first} images, expected {len(labels)}")
    if not scores:
        raise VitscopeError("There is no image to classify: select at least one.")
    return pd.concat(scores, ignore_index=True)


def _without_unknown(scores: pd.DataFrame, unknown: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Return scores of which those by a label are null where the label is unknown."""
    if not unknown.any():
        return scores
    by_label = {name: scores[name].astype(object).mask(unknown, None) for name in BY_LABEL}
    return scores.assign(**by_label)


def _check_finite(model: nn.Module, logits: Tensor, first: int) -> None:
    spoiled = int((~logits.isfinite()).any(1).sum())
    if spoiled:
        raise VitscopeError(
            f"The {type(model).__name__} gives logits that are not finite for {spoiled} of the "
            f"images {first} to {first + len(logits) - 1} of those classified: check its "
            f"checkpoint, and the mean and std of its data."
        )
