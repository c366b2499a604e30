"""Predictions: what a model says of each image, from which all of its scores follow."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.data.artefact import Split
from vitscope.errors import VitscopeError

TOP = 5


def known_labels(images: Split, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the labels of rows of an artefact, all of which must be known."""
    labels: npt.NDArray[np.int64] = np.array(images.labels[list(rows)])
    unknown = int((labels < 0).sum())
    if unknown:
        raise VitscopeError(
            f"data.{images.metadata['dataset']}: {unknown} of {len(labels)} images have no label, "
            f"so that no accuracy can be measured: use a source with labels."
        )
    return labels


def judged(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Return what a predictions table holds of each image, from (N, classes) logits and labels."""
    log_probability = logits.double().log_softmax(1)
    probability = log_probability.exp()
    confidence, prediction = probability.max(1)
    of_label = labels[:, None]
    brier = probability.square().sum(1) - 2 * probability.gather(1, of_label)[:, 0] + 1
    top = logits.topk(min(TOP, logits.shape[1]), dim=1).indices
    return {
        "label": labels,
        "prediction": prediction,
        "confidence": confidence,
        "nll": -log_probability.gather(1, of_label)[:, 0],
        "brier": brier,
        "top5": (top == of_label).any(1),
    }


def predict(
    model: nn.Module,
    batches: Iterable[Tensor],
    labels: npt.NDArray[np.int64],
    device: torch.device | None = None,
) -> pd.DataFrame:
    """Classify all images of `batches`, and return the columns of `judged`, a row per image."""
    model = model.eval().to(device)
    judgements: list[pd.DataFrame] = []
    first = 0
    with torch.inference_mode():
        for batch in batches:
            logits = model(batch.to(device)).cpu()
            truth = torch.from_numpy(labels[first : first + len(batch)])
            columns = judged(logits, truth)
            judgements.append(pd.DataFrame({key: value.numpy() for key, value in columns.items()}))
            first += len(batch)
    if first != len(labels):
        raise ValueError(f"got {first} images, expected {len(labels)}")
    return pd.concat(judgements, ignore_index=True)
