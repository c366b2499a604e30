"""The share of the variance that is within images, from the moments of all images."""

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.columns import RESAMPLED
from vitscope.measures.given import Parts
from vitscope.measures.intervals import spread_of


def _shares(means: Array) -> tuple[Array, Array]:
    """Return the variance within images and all variance, of means over images.

    These are, in columns, of the variance within, of the mean square of channels, and of channels.
    """
    within, square, channels = means[:, 0], means[:, 1], means[:, 2:]
    return within, within + square - (channels**2).mean(axis=1)


def share(within: Array, means: Array, resamples: int, seed: int) -> dict[str, float]:
    """Return what the table has of a cut point, of the moments of N images: (N,) and (N, C)."""
    # Channels about their means: squares of what is left are of the order of its variance.
    about = means - means.mean(axis=0)
    moments = np.column_stack([within, (about**2).mean(axis=1), about])
    (inside,), (total,) = _shares(moments.mean(axis=0, keepdims=True))
    found = {"images": len(within), "within": inside, "total": total}
    if not total:
        return found
    spread = spread_of(lambda each: np.divide(*_shares(each))[:, None], moments, resamples, seed)
    lists = {name: each[0] for name, each in spread.columns("share").items()}
    return found | {"share": inside / total} | lists


def merge_spatial_share(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    """Return the shares of a model at each cut point, with what is known of the cut point."""
    points = parts.cut_points
    rows = pd.concat(parts.tables).sort_values(["index", "image"])
    several = set(points["index"][points["height"] * points["width"] > 1])
    found = [
        {"index": index}
        | (
            share(each["within"].to_numpy(), np.stack(each["means"].to_list()), resamples, seed)
            if index in several
            else {"images": len(each)}
        )
        for index, each in rows.groupby("index")
    ]
    columns = ["index", "images", "within", "total", "share", "ci_low", "ci_high"]
    merged = pd.DataFrame(found, columns=[*columns, f"share{RESAMPLED}"])
    return points.merge(merged, on="index", validate="one_to_one")
