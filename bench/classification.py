"""Scores from predictions against confusion matrices per batch, and the cost of predictions."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from bench.rows import Row
from vitscope.measures.scores import scores_of
from vitscope.networks.building.networks import find_family
from vitscope.networks.running.predictions import predict, score_predictions
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

IMAGES, CLASSES, BATCH = 50_000, 1000, 125
PREDICTED, TURNS = 1000, 5


def _seconds(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def _batches() -> Iterator[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    for _ in range(IMAGES // BATCH):
        labels = torch.randint(CLASSES, (BATCH,), generator=generator)
        logits = torch.randn(BATCH, CLASSES, generator=generator)
        logits[torch.arange(BATCH), labels] += 3
        yield 3 * logits, labels


def _predictions(logits: Tensor, labels: Tensor) -> pd.DataFrame:
    return pd.DataFrame(
        {key: value.numpy() for key, value in score_predictions(logits, labels).items()}
    )


def _by_confusion_matrices(predictions: pd.DataFrame) -> dict[str, float]:
    """Score as the authors do: in each batch a confusion matrix per cut-off and per bin."""
    edges = np.linspace(0, 1, 11)
    matrices = np.zeros((12, CLASSES, CLASSES))
    confidences = np.zeros(10)
    for first in range(0, IMAGES, BATCH):
        batch = predictions.iloc[first : first + BATCH]
        label, prediction, confidence = (
            batch[name].to_numpy() for name in ("label", "prediction", "confidence")
        )
        bins = [(confidence > low) & (confidence <= high) for low, high in pairwise(edges)]
        chosen = [np.full(len(batch), True), confidence > 0.9, *bins]
        for matrix, some in zip(matrices, chosen, strict=True):
            cells = CLASSES * label[some] + prediction[some]
            counts = np.bincount(cells, minlength=CLASSES**2)
            matrix += counts.reshape(CLASSES, CLASSES)
        confidences += [confidence[some].sum() for some in bins]
    images = matrices.sum((1, 2))
    right = np.trace(matrices, axis1=1, axis2=2)
    both = np.diag(matrices[0])
    either = matrices[0].sum(0) + matrices[0].sum(1) - both
    return {
        "accuracy": right[0] / images[0],
        "accuracy_90": right[1] / images[1],
        "iou": float((both / either).mean()),
        "frequency_90": images[1] / images[0],
        "ece": np.abs(right[2:] - confidences).sum() / images[0],
    }


def _measure_scores() -> list[Row]:
    predictions = pd.concat([_predictions(*batch) for batch in _batches()], ignore_index=True)
    ours, theirs = scores_of(predictions, CLASSES), _by_confusion_matrices(predictions)
    # Only what gives the same numbers can be compared.
    assert all(abs(ours[name] - value) < 1e-9 for name, value in theirs.items())
    own = median(_seconds(lambda: scores_of(predictions, CLASSES)) for _ in range(TURNS))
    other = _seconds(lambda: _by_confusion_matrices(predictions))
    of = f"{IMAGES:,} images, {CLASSES:,} classes"
    return [
        Row("scores from predictions", own, "s", None, of),
        Row(
            "the same by confusion matrices per batch, bin and cut-off, as the authors do",
            other,
            "s",
            None,
            f"batches of {BATCH}; {other / own:.0f} times as long",
        ),
    ]


def _measure_predictions() -> Row:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    entry, data = study.models["vit"], study.dataset_of("vit")
    torch.manual_seed(0)
    family = find_family(entry.family)
    model = family.build(entry.arch, data.classes, data.image_size).eval()
    batches = torch.randn(PREDICTED, 3, 32, 32).split(study.analysis.batch_size)
    labels = np.zeros(PREDICTED, np.int64)

    def plain() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(batch)

    plain()
    turns = [
        (_seconds(plain), _seconds(lambda: predict(model, batches, labels))) for _ in range(TURNS)
    ]
    return Row(
        "mini vit: predictions over the plain forward pass",
        median(predicted / forward for forward, predicted in turns),
        "times",
        None,
        f"{PREDICTED:,} images, forward {median(forward for forward, _ in turns):.2f} s",
    )


def measure() -> list[Row]:
    """Time the scores, the authors' way to them, and the predictions that they are made from."""
    return [*_measure_scores(), _measure_predictions()]
