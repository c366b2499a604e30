import numpy as np
import pandas as pd

from vitscope.claims.intervals import RESAMPLED
from vitscope.corruptions import CLEAN, MEAN, SEVERITIES
from vitscope.measures.bootstrap import spread
from vitscope.measures.given import Parts
from vitscope.package_data import ALEXNET_ERRORS


def merge_robustness(parts: Parts) -> pd.DataFrame:
    """Stack the scores of all parts, without the column `right`, which is about single images."""
    return pd.concat(parts.tables, ignore_index=True).drop(columns="right")


def alexnet_errors(data: str) -> pd.Series:
    """Return AlexNet's published errors on a data set, by corruption, averaged over severities."""
    errors = pd.read_csv(ALEXNET_ERRORS)
    return errors[errors["data"] == data].set_index("corruption")["error"]


def merge_corruption_error(
    parts: Parts, alexnet: str | None, resamples: int, seed: int
) -> pd.DataFrame:
    """Return the error for each corruption, averaged over severities, and their mean.

    `alexnet` is the data set whose AlexNet errors are the divisors; None if none are published.
    """
    views = pd.concat(parts.tables, ignore_index=True)
    # For each corruption (row) and image (column), the share of severities with a wrong class.
    by_view = pd.DataFrame(1.0 - np.stack([*views["right"]]))
    wrong = by_view.groupby(views["corruption"].to_numpy(), sort=False).mean()
    wrong.loc[MEAN] = wrong.drop(CLEAN).mean()
    ends = spread(wrong.to_numpy().T, resamples, seed).columns("error")
    found = pd.DataFrame({"error": wrong.mean(axis=1), **ends})
    errors, of_clean = found.drop(CLEAN), found.loc[[CLEAN] * (len(found) - 1)]
    errors["clean_error"] = of_clean["error"].to_numpy()
    errors[f"clean_error{RESAMPLED}"] = of_clean[f"error{RESAMPLED}"].to_numpy()
    errors["relative_error"] = errors["error"] - errors["clean_error"]
    errors["alexnet_error"] = np.nan
    if alexnet and {*views.loc[views["corruption"] != CLEAN, "severity"]} == {*SEVERITIES}:
        errors["alexnet_error"] = alexnet_errors(alexnet).reindex(errors.index)
    errors["alexnet_ratio"] = errors["error"] / errors["alexnet_error"]
    of_means = ["alexnet_error", "alexnet_ratio"]
    errors.loc[MEAN, of_means] = errors.drop(MEAN)[of_means].mean(skipna=False)
    return errors.reset_index(names="corruption").assign(
        model=views["model"].iloc[0], images=wrong.shape[1]
    )
