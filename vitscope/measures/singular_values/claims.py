"""Claims about the effective rank of tokens: what is called rank collapse."""

import pandas as pd

from vitscope.claims.by_block import compare_kinds, in_order
from vitscope.claims.claim import Evidence, Finding, attending, claim, rank_correlation
from vitscope.measures.singular_values.table import TOKENS


@claim(
    "The effective rank of tokens falls with depth",
    "Dong et al. 2021",
    "rank correlation of depth and falling effective rank",
    attending,
    holds_above=0,
)
def rank_of_tokens_falls(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dong et al. 2021 show that the rank of tokens collapses with depth in
    attention without shortcuts and MLPs, and that both work against it, so that it need not fall.
    The value is the rank correlation (Spearman) between depth and the effective rank of tokens,
    with the sign changed, over all cut points; the claim holds if it is above zero. Networks whose
    maps change their size or their channels have no such claim: their ranks cannot be compared.
    """
    known = points.dropna(subset="effective_rank")
    sizes = known[["height", "width", "channels"]].drop_duplicates()
    if len(sizes) > 1:
        return None
    return rank_correlation(known["depth"], known["effective_rank"], -1)


@claim(
    "MSAs lower the effective rank of tokens, or raise it less than MLPs do",
    "Dong et al. 2021",
    "difference of changes",
    attending,
    holds_above=0,
)
def msas_lower_the_rank(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dong et al. 2021 show that attention alone lowers the rank of tokens, and
    that MLPs work against it. The value is the mean change of the effective rank of tokens over
    MLPs minus the mean change over MSAs; blocks that subsample or change the channels are left out.
    The claim holds if it is above zero.
    """
    alike = (points["channels"].diff() == 0) & ~points["subsampling"]
    return compare_kinds(points["effective_rank"].diff()[alike], points, "mlp", "msa")


CLAIMS = {
    "effective_rank": Evidence(
        "singular_values",
        (rank_of_tokens_falls, msas_lower_the_rank),
        lambda rows, blocks: in_order(rows[rows["of"] == TOKENS], blocks),
    )
}
