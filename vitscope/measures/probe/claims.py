import numpy as np
import pandas as pd

from vitscope.claims.claim import Claim, Evidence, attending, every_model
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import Points
from vitscope.claims.statistics import (
    Found,
    Statistic,
    grows_with_depth,
    rank_correlation,
    value_of,
)
from vitscope.measures.probe.measure import LINEAR, MEAN, PREFIX, TARGETS


def _linear_accuracies(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of linear probes at each cut point: columns `mean` and `prefix`."""
    linear = rows[rows["by"] == LINEAR].sort_values("index")
    points = linear[["index", "depth", "images"]].drop_duplicates("index")
    for of in (MEAN, PREFIX):
        columns = {"accuracy": of, f"accuracy{RESAMPLED}": f"{of}{RESAMPLED}"}
        values = linear[linear["of"] == of].rename(columns=columns)
        points = points.merge(values.filter(["index", *columns.values()]), on="index", how="left")
    return points


def _lead_with_depth(points: Points) -> Found | None:
    both = points.known(PREFIX).known(MEAN)
    # Convert leads to whole numbers of images, so that rounding cannot make equal leads differ.
    lead = np.rint((both[PREFIX] - both[MEAN]) * both["images"])
    return rank_correlation(both["depth"], lead)


CLAIMS_PROBE = Evidence(
    "probe",
    (
        Claim(
            "classes_are_easier_to_read_with_depth",
            "Classes are easier to read with depth",
            "Alain & Bengio 2017",
            every_model,
            grows_with_depth(MEAN, "accuracy of a linear probe of the mean token"),
            "Not in the paper: Alain & Bengio 2017 find that linear probes read classes better "
            "from each layer than from the one before.",
        ),
        Claim(
            "class_token_comes_up_with_depth",
            "The class token comes up to the mean token with depth",
            "Raghu et al. 2021",
            every_model,
            Statistic(
                "rank correlation of the lead of the prefix token and depth",
                "The value is the rank correlation (Spearman) of depth and the accuracy of a "
                "linear probe of the first prefix token minus that of the mean token, over all "
                "cut points that have both. A model without prefix tokens has no such claim.",
                _lead_with_depth,
            ),
            "Not in the paper: Raghu et al. 2021 find that probes read little from the class "
            "token before the last layers, and more from the mean of the other tokens.",
        ),
    ),
    _linear_accuracies,
)


def _least_probe_difference(points: Points) -> Found | None:
    known = points.known("difference")
    targets = known.frame.groupby("index")["target"].transform("nunique")
    both = known.where(targets == len(TARGETS))
    if not len(both):
        return None
    # Both targets have the same number of outliers; the first cut point wins a tie.
    index, outliers = (both.frame[name].to_numpy() for name in ("index", "outliers"))
    there = both.where(index == index[outliers.argmax()])
    return value_of(there["difference"].min(axis=1))


CLAIMS_PROBE_TOKENS = Evidence(
    "probe_tokens",
    (
        Claim(
            "outliers_know_less_of_their_place",
            "Outliers among the tokens know less of their place",
            "Darcet et al. 2024",
            attending,
            Statistic(
                "difference of shares that are read",
                "Counted at the cut point with the most outliers. The value is the share that "
                "is read of other tokens minus the one of outliers, of the position or of the "
                "pixels, whichever differs less. A model with fewer than ten images with "
                "outliers among the drawn tokens has no such claim.",
                _least_probe_difference,
            ),
            "Not in the paper: Darcet et al. 2024 find that neither position nor pixels are "
            "read as well from tokens of high norm as from others.",
        ),
    ),
    lambda rows, _: rows.sort_values(["index", "target"], ignore_index=True),
)
