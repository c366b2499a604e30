"""Claims about shortcuts: how much they carry, against branches."""

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    Evidence,
    Finding,
    attending,
    attention_against_convolution,
    claim,
    rank_correlation,
)


def _logs(points: pd.DataFrame, tokens: str) -> pd.Series:
    of_kind = points[points["tokens"] == tokens].set_index("depth").sort_index()
    return of_kind["ratio"].map(np.log).dropna()


@claim(
    "Shortcuts of networks with MSAs carry more than those of CNNs",
    "Raghu et al. 2021",
    "difference of mean log ratios",
    attention_against_convolution,
    holds_above=0,
)
def shortcuts_of_attention_carry_more(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Not in the paper: Raghu et al. 2021 find that shortcuts are more influential in ViTs than in
    ResNets. The value is the mean over sums of the natural logarithm of the norm of the shortcut
    over that of the branch, of the tokens of positions, of the first model minus that of the
    convolutional one; the claim holds if it is above zero.
    """
    more, less = (_logs(points, "positions") for points in (ours, theirs))
    return Finding(float(more.mean() - less.mean())) if len(more) and len(less) else None


@claim(
    "The class token passes through lower shortcuts, other tokens through higher ones",
    "Raghu et al. 2021",
    "rank correlation of ratio and depth, negative",
    attending,
    holds_above=0,
)
def class_token_passes_first(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Raghu et al. 2021 find that in the lower half of a ViT the shortcut counts
    for more for the class token than for other tokens, and in the upper half for less. The value is
    the rank correlation (Spearman), times -1, between depth and the ratio of norms of the class
    token divided by that of the tokens of positions; the claim holds if it is above zero.
    """
    both = (_logs(points, "class_token") - _logs(points, "positions")).dropna()
    return rank_correlation(both.index.to_series(), both, sign=-1)


CLAIMS = {
    "skip_ratio": Evidence(
        "skip_ratio",
        (shortcuts_of_attention_carry_more, class_token_passes_first),
        lambda rows, _blocks: rows,
    )
}
