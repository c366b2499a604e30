"""Claims about what is read of classes: with depth, and from which vector."""

import pandas as pd

from vitscope.claims.by_block import follow_depth
from vitscope.claims.claim import Evidence, Finding, claim, every_model
from vitscope.measures.probe.table import LINEAR, MEAN, PREFIX


@claim(
    "Classes are easier to read with depth",
    "Alain & Bengio 2017",
    "rank correlation of accuracy and depth",
    every_model,
    holds_above=0,
)
def classes_are_easier_to_read_with_depth(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Alain & Bengio 2017 find that linear probes read classes better from each
    layer than from the one before. The value is the rank correlation (Spearman) between depth and
    the accuracy of a linear probe of the mean token, over all cut points; the claim holds if it is
    above zero.
    """
    return follow_depth(points, MEAN)


@claim(
    "The class token comes up to the mean token with depth",
    "Raghu et al. 2021",
    "rank correlation of the lead of the prefix token and depth",
    every_model,
    holds_above=0,
)
def class_token_comes_up_with_depth(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Raghu et al. 2021 find that probes read little from the class token before
    the last layers, and more from the mean of the other tokens. The value is the rank correlation
    (Spearman) between depth and the accuracy of a linear probe of the first prefix token minus that
    of the mean token, over all cut points that have both; the claim holds if it is above zero. A
    model without prefix tokens has no such claim.
    """
    # Shares of the same images: what differs by rounding is equal.
    lead = (points[PREFIX] - points[MEAN]).round(9)
    return follow_depth(points.assign(lead=lead), "lead")


def _measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    linear = rows[rows["by"] == LINEAR]
    found = linear.pivot(index=["index", "depth"], columns="of", values="accuracy")
    return found.reindex(columns=[MEAN, PREFIX]).reset_index()


CLAIMS = {
    "probe": Evidence(
        "probe",
        (classes_are_easier_to_read_with_depth, class_token_comes_up_with_depth),
        _measured,
    )
}
