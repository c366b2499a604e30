"""Classify images clean and disturbed, to see how often the class is still found."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vitscope.data.split import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

# A function that gets images and their rows in the split, and yields for each draw the images under
# each disturbance.
Disturb = Callable[["Tensor", Sequence[int]], Iterable[Iterable["Tensor"]]]


def classify_disturbed(given: OnModel, chosen: Given, disturb: Disturb) -> tuple[Array, Array]:
    """Classify images of a split, clean and disturbed; return what `shares_found` returns.

    `chosen` has the number of images and the seed that draws them.
    """
    rows = rows_to_classify(given.images, chosen["images"], chosen["seed"])
    labels = known_labels(given.images, rows)
    return shares_found(given.network, given.batches(rows), rows, labels, disturb, given.device)


def shares_found(
    model: "nn.Module",
    batches: Iterable["Tensor"],
    rows: Sequence[int],
    labels: Array,
    disturb: Disturb,
    device: "torch.device | None" = None,
) -> tuple[Array, Array]:
    """Return whether the class of each image is found, and how often if the image is disturbed.

    The first array (N,) is for clean images. The second array (N, K) has the share of draws in
    which the class is found under each of K disturbances. `batches` are the normalized images of
    `rows` of the split.
    """
    import torch

    model = model.eval().to(device)
    clean, shares, first = [], [], 0
    with torch.inference_mode():
        for batch in batches:
            here = slice(first, first + len(batch))
            images, truth = batch.to(device), labels[here]
            clean.append(_is_class_found(model, images, truth))
            draws = disturb(images, rows[here])
            found = [[_is_class_found(model, each, truth) for each in draw] for draw in draws]
            shares.append(np.mean(found, axis=0).T)
            first += len(batch)
    if first != len(rows):
        raise ValueError(f"got {first} images, expected {len(rows)}")
    return np.concatenate(clean), np.concatenate(shares)


def _is_class_found(model: "nn.Module", images: "Tensor", labels: Array) -> Array:
    logits = model(images).cpu().numpy()
    if not np.isfinite(logits).all():
        raise VitscopeError(
            f"The {type(model).__name__} gives logits that are not finite: check its checkpoint, "
            f"the mean and std of its data, and the settings of what disturbs the images."
        )
    found: Array = logits.argmax(axis=1) == labels
    return found
