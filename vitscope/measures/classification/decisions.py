"""What people and networks took images of two cues for, as it was published.

`vitscope/claims/published_points/cue_conflict.csv` has a row for each of them, and in `decisions` a
letter for each image, in the order of their source: `s` for the category of the shape, `t` for that
of the texture, `o` for any other or none; where both cues are of one category, `+` for this and `-`
for any other or none.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.package_data import PUBLISHED_POINTS

PEOPLE = "people"
# So many images that follow each other have a shape of one category.
IMAGES_OF_SHAPE = 80

Letters = npt.NDArray[np.str_]


def letters_of(decisions: "pd.Series[str]") -> Letters:
    """Return the decisions of each observer, (observers, images)."""
    return np.array([list(each) for each in decisions])


def say_shape(letters: Letters) -> npt.NDArray[np.bool_]:
    """Tell which decisions are for the category of the shape."""
    return np.isin(letters, ["s", "+"])


def read_people(file: str) -> npt.NDArray[np.bool_]:
    """Return whether each person named the shape of each image, (people, images)."""
    table = pd.read_csv(PUBLISHED_POINTS / file)
    return say_shape(letters_of(table.loc[table["model"] == PEOPLE, "decisions"]))


def count_decisions(letters: Letters) -> pd.DataFrame:
    """Return what observers went by together: a row for all images, and for those of each shape."""
    shapes = letters.reshape(len(letters), -1, IMAGES_OF_SHAPE)
    counts = pd.DataFrame(
        {cue: (shapes == cue[0]).sum(axis=(0, 2)) for cue in ("shape", "texture", "other")}
    )
    counts = pd.concat([counts.sum().to_frame().T, counts], ignore_index=True)
    shares = counts.div(counts.sum(axis=1), axis=0)
    either = (counts["shape"] + counts["texture"]).replace(0, np.nan)
    return pd.DataFrame(
        {
            "shape_accuracy": shares["shape"],
            "texture_accuracy": shares["texture"],
            "shape_bias": counts["shape"] / either,
        }
    )


def shape_share(shares: Array) -> Array:
    """Return the share of shape among decisions by either cue; NaN if there are none of these.

    `shares` are of decisions by shape and by texture, in the last axis.
    """
    either = shares.sum(axis=-1)
    result: Array = shares[..., 0] / np.where(either > 0, either, np.nan)
    return result
