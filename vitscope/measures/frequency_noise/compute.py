"""Noise of one frequency, and what it costs in accuracy: Fig. 2b of the paper.

Noise is drawn and filtered by numpy, also where the model runs on another device: every model gets
the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vitscope.data.image_rows import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.frequency_noise.noise import half_plane, noises, ring, signs
from vitscope.measures.given import OnModel
from vitscope.measures.intervals import accuracy_changes

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Noise = Mapping[str, Any]


def shares_found(
    model: "nn.Module",
    batches: Iterable["Tensor"],
    rows: Sequence[int],
    labels: Array,
    noise: Noise,
    device: "torch.device | None" = None,
) -> tuple[Array, Array]:
    """Tell for each image whether its class is found, (N,), and how often under noise, (N, K).

    The latter is a share of the draws of noise, for each of K frequencies. `batches` are the
    normalized images of `rows` of the split; `noise` has the `frequencies`, their `width`, `eps`
    and the number of `seeds`.
    """
    import torch

    model = model.eval().to(device)
    clean, shares, first = [], [], 0
    with torch.inference_mode():
        for batch in batches:
            here = slice(first, first + len(batch))
            images = batch.to(device)
            clean.append(_found(model, images, labels[here]))
            shares.append(_share_of_draws(model, images, rows[here], labels[here], noise))
            first += len(batch)
    if first != len(rows):
        raise ValueError(f"got {first} images, expected {len(rows)}")
    return np.concatenate(clean), np.concatenate(shares)


def _found(model: "nn.Module", images: "Tensor", labels: Array) -> Array:
    logits = model(images).cpu().numpy()
    if not np.isfinite(logits).all():
        raise VitscopeError(
            f"The {type(model).__name__} gives logits that are not finite: check its checkpoint, "
            f"the mean and std of its data, and analysis.frequency_noise.eps."
        )
    found: Array = logits.argmax(axis=1) == labels
    return found


def _share_of_draws(
    model: "nn.Module", images: "Tensor", rows: Sequence[int], labels: Array, noise: Noise
) -> Array:
    channels, size = images.shape[1], images.shape[2:]
    factors = [
        noise["eps"] * half_plane(ring(frequency, noise["width"], size))
        for frequency in noise["frequencies"]
    ]
    found = [
        [
            _found(model, images + images.new_tensor(filtered), labels)
            for filtered in noises(signs(seed, rows, size, channels), factors)
        ]
        for seed in range(noise["seeds"])
    ]
    share: Array = np.mean(found, axis=0).T
    return share


def noise_table(
    model: str,
    clean: Array,
    shares: Array,
    noise: Noise,
    size: ImageSize,
    bootstrap: Mapping[str, int],
) -> pd.DataFrame:
    """Return the table of one model from the results of `shares_found`; images have a `size`."""
    frequencies, width = noise["frequencies"], noise["width"]
    table = pd.DataFrame(
        {
            "model": model,
            "frequency": np.array(frequencies, np.float64),
            "width": float(width),
            "eps": float(noise["eps"]),
            "image_size": height_and_width(size)[0],
            "components": [int(ring(each, width, size).sum()) for each in frequencies],
            "images": len(clean),
            "seeds": noise["seeds"],
        }
    )
    changes = accuracy_changes(clean, shares, **bootstrap)
    return table.join(changes).sort_values("frequency", ignore_index=True)


def measure(
    given: OnModel, chosen: Mapping[str, Any], noise: Noise, bootstrap: Mapping[str, int]
) -> pd.DataFrame:
    """Return the change of accuracy by noise of each frequency, on the `chosen` images."""
    rows = rows_to_classify(given.images, chosen["images"], chosen["seed"])
    labels = known_labels(given.images, rows)
    clean, shares = shares_found(
        given.network, given.batches(rows), rows, labels, noise, given.device
    )
    return noise_table(given.model, clean, shares, noise, given.settings["image_size"], bootstrap)
