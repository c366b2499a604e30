"""The image sets of Geirhos et al. (2021): names of images, and what people took them for."""

from functools import cache

import pandas as pd

from vitscope.package_data import PUBLISHED_POINTS

# The condition of a set whose images are all alike.
ONLY_CONDITION = "0"


@cache
def read_shown_images(name: str) -> pd.DataFrame:
    """Return a row for each image of the set `name`: `condition`, `category`, `image`, `decisions`.

    Conditions are in their natural order. `decisions` has a letter for each person: `a` for the
    first of the 16 categories, and so on, and `-` for none.
    """
    return _read_rows_of_set("model_vs_human.csv.gz", name)


@cache
def read_shown_conditions(name: str) -> pd.DataFrame:
    """Return a row for each condition of the set `name`, in their natural order.

    `quantity` is what conditions are values of, and `label` the value. `counted` is "1" if the
    condition counts in the authors' means: images are changed, and people name more than a fifth.
    """
    return _read_rows_of_set("model_vs_human_conditions.csv", name)


def _read_rows_of_set(file: str, name: str) -> pd.DataFrame:
    # Conditions are names, even if they look like numbers.
    table = pd.read_csv(PUBLISHED_POINTS / file, dtype=str, keep_default_na=False)
    return table[table["set"] == name].reset_index(drop=True)
