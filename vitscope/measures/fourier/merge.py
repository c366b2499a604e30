"""Log amplitudes by frequency: means over the images of all shards, and their intervals."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from vitscope.measures.columns import RESAMPLED
from vitscope.measures.given import Parts
from vitscope.measures.intervals import spread

# The quantities of a part that are log amplitudes; the others are variances in bands.
AMPLITUDES = ("diagonal", "radial")
_RESAMPLED = f"delta_log_amplitude{RESAMPLED}"


def _frequencies(measure: str, points: pd.DataFrame) -> pd.Series:
    """Return the frequency of each row in units of pi, from its step and the size of its map."""
    if measure == "radial":
        return 2 * points["step"] / points[["height", "width"]].max(axis=1)
    # The authors label the last step 1.0 pi, whatever frequency it really has.
    return points["step"] / points.groupby("index")["step"].transform("max").clip(lower=1)


def _means(per_image: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    """Return the mean over images of each amplitude, and of its difference to frequency 0.

    `per_image` has a row for each image, and a column for each index and step.
    """
    per_image = per_image.sort_index().sort_index(axis=1)
    values = per_image.to_numpy(np.float64)
    steps = per_image.columns.get_level_values("step").to_numpy()
    at_zero = np.flatnonzero(steps == 0)[np.cumsum(steps == 0) - 1]
    difference = values - values[:, at_zero]
    return pd.DataFrame(
        {
            "index": per_image.columns.get_level_values("index"),
            "step": steps,
            "images": len(values),
            "log_amplitude": values.mean(axis=0),
            "delta_log_amplitude": difference.mean(axis=0),
            **spread(difference, resamples, seed).columns("delta_log_amplitude"),
        }
    )


def _per_image(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    # Each table is reshaped before the next is read: a row for each image takes a fifth of the
    # memory that a row for each value takes.
    return pd.concat(
        table[table["quantity"].isin(AMPLITUDES)].pivot(
            index="image", columns=["quantity", "index", "step"], values="value"
        )
        for table in tables
    )


def merge_fourier(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    """Return the amplitudes of a model: means over all images, and their 95 % intervals."""
    per_image = _per_image(parts.tables)
    merged = []
    for quantity in AMPLITUDES:
        if quantity in per_image:
            means = _means(pd.DataFrame(per_image[quantity]), resamples, seed)
            points = parts.cut_points.merge(means, on="index", validate="one_to_many")
            frequency = _frequencies(quantity, points)
            merged.append(points.drop(columns="step").assign(measure=quantity, frequency=frequency))
    table = pd.concat(merged, ignore_index=True)
    # Claims are about the highest frequency of the diagonal: no other row keeps its resamples.
    claimed = (table["measure"] == "diagonal") & (table["frequency"] == 1)
    return table.assign(**{_RESAMPLED: table[_RESAMPLED].where(claimed, None)})
