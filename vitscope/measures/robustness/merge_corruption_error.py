"""The error on corrupted images, by corruption."""

import pandas as pd

from vitscope.corruptions import CLEAN, MEAN
from vitscope.measures.given import Parts


def corruption_error(table: pd.DataFrame) -> pd.DataFrame:
    """Return the error for each corruption, averaged over severities, and the mean of these."""
    clean = table["corruption"] == CLEAN
    clean_error = 1 - table.loc[clean, "accuracy"].item()
    accuracy = table[~clean].groupby("corruption", sort=False)["accuracy"].mean()
    error = 1 - accuracy
    error[MEAN] = error.mean()
    return pd.DataFrame(
        {
            "model": table["model"].iloc[0],
            "corruption": error.index,
            "images": table["images"].iloc[0],
            "clean_error": clean_error,
            "error": error.to_numpy(),
            "relative_error": error.to_numpy() - clean_error,
        }
    )


def merge(parts: Parts) -> pd.DataFrame:
    """Return the corruption errors of a model from all parts of its robustness table."""
    return corruption_error(pd.concat(parts.tables, ignore_index=True))
