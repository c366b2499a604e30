"""Claims about oversmoothing: tokens become more alike with depth, and by which blocks."""

import pandas as pd

from vitscope.claims.by_block import compare_changes, follow_depth, in_order
from vitscope.claims.claim import Evidence, Finding, attending, claim


@claim(
    "Tokens become more alike with depth",
    "Gong et al. 2021",
    "rank correlation of similarity and depth",
    attending,
    holds_above=0,
)
def tokens_become_alike(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Gong et al. 2021 and others find that the tokens of a vision transformer
    become more similar with depth (oversmoothing). The value is the rank correlation (Spearman)
    between depth and the similarity of tokens, over all cut points; the claim holds if it is above
    zero.
    """
    return follow_depth(points, "similarity")


@claim(
    "MSAs make tokens more alike than MLPs do",
    "Dong et al. 2021",
    "difference of changes",
    attending,
    holds_above=0,
)
def msas_make_tokens_alike(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dong et al. 2021 show that attention alone makes tokens similar, and that
    MLPs work against it. The value is the mean change of the similarity over MSAs minus the mean
    change over MLPs; blocks that subsample are left out. The claim holds if it is above zero.
    """
    return compare_changes(points, "similarity", "msa", "mlp")


CLAIMS = {
    "token_similarity": Evidence(
        "token_similarity",
        (tokens_become_alike, msas_make_tokens_alike),
        in_order,
    )
}
