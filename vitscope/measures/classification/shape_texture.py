"""Measure how often a network decides by shape and by texture, and if it errs like people."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.intervals import KEPT, RESAMPLED, TAILS, share_interval
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import bootstrap_image_means, ratio
from vitscope.measures.given import OnPredictions
from vitscope.package_data import PUBLISHED_POINTS

PEOPLE = "people"
# The number of successive images that show shapes of the same category.
IMAGES_OF_SHAPE = 80


def letters_of(decisions: "pd.Series[str]") -> Array:
    """Split the decisions of each observer into letters, one per image: (observers, images)."""
    return np.array([list(each) for each in decisions])


def read_people(file: str) -> Array:
    """Read whether each person named the shape of each image: (people, images)."""
    table = pd.read_csv(PUBLISHED_POINTS / file)
    people = letters_of(table.loc[table["model"] == PEOPLE, "decisions"])
    return np.isin(people, ["s", "+"])


def count_classifications_by_cue(letters: Array) -> pd.DataFrame:
    """Return the shares of decisions that follow shape and texture, and the shape bias.

    `letters` (observers, images) holds the decisions; those of all observers are counted together.
    The first row of the result is for all images, each other row for the images of one shape.
    """
    shapes = letters.reshape(len(letters), -1, IMAGES_OF_SHAPE)
    counts = pd.DataFrame(
        {cue: (shapes == cue[0]).sum(axis=(0, 2)) for cue in ("shape", "texture", "other")}
    )
    counts = pd.concat([counts.sum().to_frame().T, counts], ignore_index=True)
    shares = counts.div(counts.sum(axis=1), axis=0)[["shape", "texture"]].add_suffix("_accuracy")
    return shares.assign(shape_bias=shape_share(counts[["shape", "texture"]].to_numpy()))


def shape_share(shares: Array) -> Array:
    """Return the bias shape / (shape + texture) of `shares` (..., 2); NaN if both are 0."""
    either = shares.sum(axis=-1)
    result: Array = shares[..., 0] / np.where(either > 0, either, np.nan)
    return result


ALL = "all"
CONSISTENCY = ("consistency", "consistency_low", "consistency_high")


def cue_classes(images: Split, rows: Sequence[int]) -> tuple[Array, Array]:
    """Return the classes of the shape and of the texture of the images in `rows`."""
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


def shape_bias_of_classification(
    prediction: Array,
    shape: Array,
    texture: Array,
    classes: Sequence[str],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return how often a model decides by shape and by texture: for all images and for each shape.

    Images whose shape and texture show the same class are left out.
    """
    conflict = shape != texture
    if not conflict.any():
        raise VitscopeError(
            "Shape and texture are of one class in all images, so that no shape bias can be "
            "measured: name a split where they are not in analysis.shape_texture.split."
        )
    found = np.column_stack([prediction == shape, prediction == texture])[conflict]
    groups = _images_by_shape(shape[conflict], classes)
    table = pd.DataFrame(
        {"class_name": name, "images": len(chosen)}
        | _classification_shape_bias(found[chosen], resamples, seed)
        for name, chosen in groups
    )
    # Keep resamples only in the row for all images, the row that claims are about.
    resampled = table[f"shape_bias{RESAMPLED}"].where(table["class_name"] == ALL, None)
    return table.assign(**{f"shape_bias{RESAMPLED}": resampled})


def _images_by_shape(shape: Array, classes: Sequence[str]) -> Iterator[tuple[str, Array]]:
    """Yield names and image indices: first for all images, then for the images of each shape."""
    yield ALL, np.arange(len(shape))
    for number in np.unique(shape):
        yield classes[number], np.flatnonzero(shape == number)


def _classification_shape_bias(found: Array, resamples: int, seed: int) -> dict[str, Any]:
    """Return the shares of decisions by shape and by texture, the shape bias and its interval.

    `found` (N, 2) says for each image if the model named its shape, and if it named its texture.
    Resamples without a decision by shape or texture have no shape bias, and the interval leaves
    them out. If all other resamples are equal, the interval is Wilson's for the decisions.
    """
    shares = found.mean(axis=0)
    bias = {
        "shape_accuracy": shares[0],
        "texture_accuracy": shares[1],
        "shape_bias": shape_share(shares),
    }
    if len(found) == 1 or not found.any():
        return bias | {"ci_low": np.nan, "ci_high": np.nan, f"shape_bias{RESAMPLED}": None}
    biases = shape_share(bootstrap_image_means(found.astype(np.float64), resamples, seed))
    low, high = np.nanpercentile(biases, TAILS)
    if low == high:
        low, high = share_interval(int(found[:, 0].sum()), int(found.sum()))
    kept = biases[:KEPT].astype(np.float32)
    return bias | {"ci_low": low, "ci_high": high, f"shape_bias{RESAMPLED}": kept}


def classification_consistency(
    says_shape: Array,
    people: Array,
    shape: Array,
    classes: Sequence[str],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return the error consistency with people, over all images and for each shape.

    The error consistency is the mean over people of Cohen's kappa of two variables: whether the
    model names the shape of an image, `says_shape` (N,), and whether the person does, `people`
    (people, N). Images whose shape and texture show the same class count too.
    """
    values = np.column_stack([says_shape, people.T, (people & says_shape).T]).astype(np.float64)
    rows = []
    for name, chosen in _images_by_shape(shape, classes):
        resampled = mean_kappa(bootstrap_image_means(values[chosen], resamples, seed))
        known = len(chosen) > 1 and np.isfinite(resampled).any()
        ends = np.nanpercentile(resampled, TAILS) if known else (np.nan, np.nan)
        kappa = mean_kappa(values[chosen].mean(axis=0, keepdims=True))[0]
        rows.append((name, kappa, *ends))
    return pd.DataFrame(rows, columns=["class_name", *CONSISTENCY])


def mean_kappa(means: Array) -> Array:
    """Return the mean over people of Cohen's kappa; NaN if it is undefined for a person.

    It is undefined if chance explains all agreement of model and person. The columns of `means` are
    the shares of images whose shape is named by the model, by each person, and by both.
    """
    ours, (people, both) = means[:, :1], np.split(means[:, 1:], 2, axis=1)
    by_chance = ours + people - 2 * ours * people
    kappa: Array = ratio(2 * (both - ours * people), by_chance).mean(axis=1)
    return kappa


def measure_shape_texture(given: OnPredictions, resamples: int, seed: int) -> pd.DataFrame:
    """Measure how often a model decides by shape and by texture, and if it errs like people."""
    predictions, images = given.predictions, given.images
    rows = predictions["image"].to_list()
    shape, texture = cue_classes(images, rows)
    prediction = predictions["prediction"].to_numpy()
    table = shape_bias_of_classification(
        prediction, shape, texture, images.classes, resamples, seed
    )
    table = table.assign(model=given.model)
    decisions = images.metadata.get("decisions")
    if decisions is None:
        return table.assign(**dict.fromkeys(CONSISTENCY, np.nan))
    people = read_people(decisions)[:, images.column("index")[rows]]
    alike = classification_consistency(
        prediction == shape, people, shape, images.classes, resamples, seed
    )
    return table.merge(alike, on="class_name", how="left", validate="1:1")
