"""How a model classifies images that are disturbed, each in several draws."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vitscope.data.split import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnModel

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

# Yields, of normalized images and their rows of the split, the images of each draw: these once for
# each disturbance.
Disturb = Callable[["Tensor", Sequence[int]], Iterable[Iterable["Tensor"]]]


def classify_disturbed(
    given: OnModel, chosen: Mapping[str, Any], disturb: Disturb
) -> tuple[Array, Array]:
    """Classify the `chosen` images of a split as they are, and disturbed: as `shares_found`."""
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
    """Tell for each image whether its class is found, (N,), and how often if disturbed, (N, K).

    The latter is a share of the draws, for each of K disturbances. `batches` are the normalized
    images of `rows` of the split.
    """
    import torch

    model = model.eval().to(device)
    clean, shares, first = [], [], 0
    with torch.inference_mode():
        for batch in batches:
            here = slice(first, first + len(batch))
            images, truth = batch.to(device), labels[here]
            clean.append(_found(model, images, truth))
            draws = disturb(images, rows[here])
            found = [[_found(model, each, truth) for each in draw] for draw in draws]
            shares.append(np.mean(found, axis=0).T)
            first += len(batch)
    if first != len(rows):
        raise ValueError(f"got {first} images, expected {len(rows)}")
    return np.concatenate(clean), np.concatenate(shares)


def _found(model: "nn.Module", images: "Tensor", labels: Array) -> Array:
    logits = model(images).cpu().numpy()
    if not np.isfinite(logits).all():
        raise VitscopeError(
            f"The {type(model).__name__} gives logits that are not finite: check its checkpoint, "
            f"the mean and std of its data, and the settings of what disturbs the images."
        )
    found: Array = logits.argmax(axis=1) == labels
    return found
