"""Noise of one frequency, and what it costs in accuracy: Fig. 2b of the paper.

Noise is drawn and filtered by numpy, also where the model runs on another device: every model gets
the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.measures.frequency_noise.rings import sides
from vitscope.measures.given import OnModel
from vitscope.measures.intervals import accuracy_changes
from vitscope.networks.image_rows import known_labels, rows_to_classify

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Array = npt.NDArray[Any]
Noise = Mapping[str, Any]

CHANNELS = 3


def ring(frequency: float, width: float, size: int) -> Array:
    """Return which components lie in the ring, (size, size), with frequency 0 in the centre.

    The squares have even sides, so that they reach one component further to negative frequencies
    than to positive ones.
    """
    outer, inner = (_square(side, size) for side in sides(frequency, width, size))
    return outer & ~inner


def _square(side: int, size: int) -> Array:
    inside = np.zeros((size, size), bool)
    border = (size - side) // 2
    inside[border : size - border, border : size - border] = True
    return inside


def half_plane(mask: Array) -> Array:
    """Return the factors of the components of a real transform that do what a mask does.

    `mask` is of the whole plane, with frequency 0 in the centre. What it lets pass of a real image
    is complex where it is not symmetric; the real part of that is what passes the mean of the mask
    and its mirror image.
    """
    kept = np.fft.ifftshift(mask).astype(np.float32)
    mirrored = np.roll(kept[::-1, ::-1], 1, axis=(0, 1))
    return ((kept + mirrored) / 2)[:, : len(mask) // 2 + 1]


def signs(seed: int, rows: Sequence[int], size: int) -> Array:
    """Return 1 or -1, each as likely, as float32 (N, 3, size, size).

    Those of an image depend on the seed and on its row in the artefact, and on nothing else.
    """
    count = CHANNELS * size * size
    words = [
        np.random.Philox(key=np.array([seed, row], np.uint64)).random_raw(ceil(count / 64))
        for row in rows
    ]
    raw = np.stack(words).astype("<u8").view(np.uint8)
    bits = np.unpackbits(raw, axis=1, count=count).astype(np.float32)
    return (2 * bits - 1).reshape(len(rows), CHANNELS, size, size)


def noises(images: Array, factors: Iterable[Array]) -> Iterator[Array]:
    """Yield what is left of real images, or of noise, behind each filter of `half_plane`."""
    spectrum = np.fft.rfft2(images)
    for factor in factors:
        yield np.fft.irfft2(spectrum * factor, s=images.shape[-2:])


def shares_found(
    model: "nn.Module",
    batches: Iterable["Tensor"],
    rows: Sequence[int],
    labels: Array,
    noise: Noise,
    device: "torch.device | None" = None,
) -> tuple[Array, Array]:
    """Tell whether the class of each image is found, (N,), and in which share of the draws, (N, K).

    `batches` are the normalized images of `rows` of the artefact; `noise` has the K `frequencies`,
    their `width`, `eps` and the number of `seeds`.
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
    size = images.shape[-1]
    factors = [
        noise["eps"] * half_plane(ring(frequency, noise["width"], size))
        for frequency in noise["frequencies"]
    ]
    found = [
        [
            _found(model, images + images.new_tensor(filtered), labels)
            for filtered in noises(signs(seed, rows, size), factors)
        ]
        for seed in range(noise["seeds"])
    ]
    share: Array = np.mean(found, axis=0).T
    return share


def noise_table(
    model: str, clean: Array, shares: Array, noise: Noise, size: int, bootstrap: Mapping[str, int]
) -> pd.DataFrame:
    """Return the table of one model, from what `shares_found` tells of images of `size` pixels."""
    frequencies, width = noise["frequencies"], noise["width"]
    table = pd.DataFrame(
        {
            "model": model,
            "frequency": np.array(frequencies, np.float64),
            "width": float(width),
            "eps": float(noise["eps"]),
            "image_size": size,
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
    """Measure what noise of each frequency costs a model; `chosen` says of which images."""
    rows = rows_to_classify(given.images, chosen["images"], chosen["seed"])
    labels = known_labels(given.images, rows)
    clean, shares = shares_found(
        given.network, given.batches(rows), rows, labels, noise, given.device
    )
    return noise_table(given.model, clean, shares, noise, given.settings["image_size"], bootstrap)
