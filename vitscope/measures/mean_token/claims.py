"""Claims about oversmoothing: the mean token takes over with depth, and by which blocks."""

import pandas as pd

from vitscope.claims.by_block import compare_changes, follow_depth, in_order
from vitscope.claims.claim import Evidence, Finding, attending, claim


@claim(
    "The mean token takes a larger share with depth",
    "Wang et al. 2022",
    "rank correlation of share and depth",
    attending,
    holds_above=0,
)
def mean_token_takes_over(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Wang et al. 2022 find that the tokens of a vision transformer lose what is
    not in their mean with depth (oversmoothing). The value is the rank correlation (Spearman)
    between depth and the share of the mean token in the energy of all tokens, over all cut points;
    the claim holds if it is above zero.
    """
    return follow_depth(points, "share")


@claim(
    "MSAs raise the share of the mean token more than MLPs do",
    "Wang et al. 2022",
    "difference of changes",
    attending,
    holds_above=0,
)
def msas_raise_the_mean_token(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Wang et al. 2022 show that attention is a low-pass filter, which alone
    would leave nothing but the mean token. The value is the mean change of the share of the mean
    token over MSAs minus the mean change over MLPs; blocks that subsample are left out. The claim
    holds if it is above zero.
    """
    return compare_changes(points, "share", "msa", "mlp")


CLAIMS = {
    "mean_token": Evidence(
        "mean_token", (mean_token_takes_over, msas_raise_the_mean_token), in_order
    )
}
