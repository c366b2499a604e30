"""Noise of one frequency, and what it costs in accuracy: Fig. 2b of the paper.

Noise is drawn and filtered by numpy, also where the model runs on another device: every model gets
the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.disturbed import Disturb, classify_disturbed
from vitscope.measures.frequency_noise.noise import half_plane, noises, ring, signs
from vitscope.measures.given import OnModel
from vitscope.measures.intervals import accuracy_changes

if TYPE_CHECKING:
    from torch import Tensor


Noise = Mapping[str, Any]


def disturb_by(noise: Noise) -> Disturb:
    """Return how noise is added to images: its `frequencies`, `width`, `eps`, draws as `seeds`."""

    def disturb(images: "Tensor", rows: Sequence[int]) -> Iterator[Iterator["Tensor"]]:
        channels, size = images.shape[1], images.shape[2:]
        factors = [
            noise["eps"] * half_plane(ring(frequency, noise["width"], size))
            for frequency in noise["frequencies"]
        ]
        for seed in range(noise["seeds"]):
            drawn = noises(signs(seed, rows, size, channels), factors)
            yield (images + images.new_tensor(filtered) for filtered in drawn)

    return disturb


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


def measure_frequency_noise(
    given: OnModel, chosen: Mapping[str, Any], noise: Noise, bootstrap: Mapping[str, int]
) -> pd.DataFrame:
    """Return the change of accuracy by noise of each frequency, on the `chosen` images."""
    clean, shares = classify_disturbed(given, chosen, disturb_by(noise))
    return noise_table(given.model, clean, shares, noise, given.settings["image_size"], bootstrap)
