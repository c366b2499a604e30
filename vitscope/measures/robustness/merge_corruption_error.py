"""The error on corrupted images, by corruption."""

import numpy as np
import pandas as pd

from vitscope.claims.chance import known_share_interval
from vitscope.corruptions import CLEAN, MEAN, SEVERITIES
from vitscope.measures.given import Parts
from vitscope.package_data import ALEXNET_ERRORS


def alexnet_errors(data: str) -> pd.Series:
    """Return the published errors of AlexNet by corruption, means over all severities."""
    errors = pd.read_csv(ALEXNET_ERRORS)
    return errors[errors["data"] == data].set_index("corruption")["error"]


def corruption_error(table: pd.DataFrame, alexnet: str | None = None) -> pd.DataFrame:
    """Return the error for each corruption, averaged over severities, and the mean of these.

    `alexnet` is the data set whose errors of AlexNet they are divided by, if there is any.
    """
    clean = table["corruption"] == CLEAN
    clean_error, images = 1 - table.loc[clean, "accuracy"].item(), int(table["images"].iloc[0])
    accuracy = table[~clean].groupby("corruption", sort=False)["accuracy"].mean()
    errors = pd.DataFrame({"error": 1 - accuracy, "alexnet_error": np.nan})
    if alexnet and {*table.loc[~clean, "severity"]} == {*SEVERITIES}:
        errors["alexnet_error"] = alexnet_errors(alexnet).reindex(errors.index)
    errors["alexnet_ratio"] = errors["error"] / errors["alexnet_error"]
    errors.loc[MEAN] = errors.mean(skipna=False)
    ends = [known_share_interval(error, images) for error in errors["error"]]
    errors[["ci_low", "ci_high"]] = ends
    return errors.reset_index(names="corruption").assign(
        model=table["model"].iloc[0],
        images=images,
        clean_error=clean_error,
        relative_error=errors["error"].to_numpy() - clean_error,
    )


def merge(parts: Parts, alexnet: str | None) -> pd.DataFrame:
    """Return the corruption errors of a model from all parts of its robustness table."""
    return corruption_error(pd.concat(parts.tables, ignore_index=True), alexnet)
