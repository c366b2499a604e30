"""Shape bias: whether a model decides by shape or texture, where these show different classes."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from vitscope.claims.chance import with_width
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnPredictions
from vitscope.measures.intervals import TAILS, bootstrap_means

ALL = "all"


def cues(images: Split, rows: Sequence[int]) -> tuple[Array, Array]:
    """Return the class that the shape shows and that the texture shows, for rows of a split."""
    try:
        columns = [images.column(name) for name in ("shape", "texture")]
    except KeyError as error:
        raise VitscopeError(
            f"data.{images.metadata['dataset']}: the images of the split "
            f"'{images.metadata['split']}' do not say their {error}, so that no shape bias can be "
            f"measured: name a split that does in analysis.shape_texture.split."
        ) from error
    shape, texture = (np.array(column[list(rows)]) for column in columns)
    return shape, texture


def shape_biases(
    prediction: Array,
    shape: Array,
    texture: Array,
    classes: Sequence[str],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return how often a model decides by shape and by texture, over all images and for each shape.

    Images whose shape and texture show the same class are left out.
    """
    conflict = shape != texture
    if not conflict.any():
        raise VitscopeError(
            "Shape and texture are of one class in all images, so that no shape bias can be "
            "measured: name a split where they are not in analysis.shape_texture.split."
        )
    found = np.column_stack([prediction == shape, prediction == texture])[conflict]
    groups = _groups(shape[conflict], classes)
    return pd.DataFrame(
        {"class_name": name, "images": len(chosen)} | _bias(found[chosen], resamples, seed)
        for name, chosen in groups
    )


def _groups(shape: Array, classes: Sequence[str]) -> Iterator[tuple[str, Array]]:
    """Yield the positions of all images, then of the images of each shape that occurs."""
    yield ALL, np.arange(len(shape))
    for number in np.unique(shape):
        yield classes[number], np.flatnonzero(shape == number)


def _bias(found: Array, resamples: int, seed: int) -> dict[str, float]:
    """Return the shares of decisions by shape and by texture, the shape bias and its interval.

    `found` tells for each image whether the model named its shape, and whether its texture: (N, 2).
    """
    shares = found.mean(axis=0)
    low, high = _bias_interval(found, resamples, seed)
    return {
        "shape_accuracy": shares[0],
        "texture_accuracy": shares[1],
        "shape_bias": _ratio(shares),
        "ci_low": low,
        "ci_high": high,
    }


def _ratio(shares: Array) -> Array:
    """Return the share of shape among decisions by either cue; NaN if there are none of these."""
    either = shares.sum(axis=-1)
    result: Array = shares[..., 0] / np.where(either > 0, either, np.nan)
    return result


def _bias_interval(found: Array, resamples: int, seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the shape bias, by bootstrap over images.

    Resamples without a decision by either cue are left out: they have no shape bias. Where all are
    equal, it is Wilson's interval of the decisions.
    """
    if len(found) == 1 or not found.any():
        return np.nan, np.nan
    ratios = _ratio(bootstrap_means(found.astype(np.float64), resamples, seed))
    low, high = np.nanpercentile(ratios, TAILS)
    by_shape, by_either = int(found[:, 0].sum()), int(found.sum())
    return with_width((float(low), float(high)), by_shape, by_either)


def measure(given: OnPredictions, resamples: int, seed: int) -> pd.DataFrame:
    """Return how often a model decides by shape and by texture."""
    predictions, images = given.predictions, given.images
    shape, texture = cues(images, predictions["image"].to_list())
    prediction = predictions["prediction"].to_numpy()
    table = shape_biases(prediction, shape, texture, images.classes, resamples, seed)
    return table.assign(model=given.model)
