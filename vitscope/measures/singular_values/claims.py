"""Claims about the effective rank of tokens: what is called rank collapse."""

import pandas as pd
from scipy.stats import spearmanr

from vitscope.claims.by_block import in_order
from vitscope.claims.claim import Claim, Finding, attending
from vitscope.claims.evidence import Evidence
from vitscope.measures.singular_values.table import TABLE, TOKENS

_OF_DEPTH = (
    "Not in the paper: Dong et al. 2021 show that the rank of tokens collapses with depth in "
    "attention without shortcuts and MLPs, and that both work against it, so that it need not "
    "fall. The value is the rank correlation (Spearman) between depth and the effective rank of "
    "tokens, with the sign changed, over all cut points; the claim holds if it is above zero. "
    "Networks whose maps change their size or their channels have no such claim: their ranks "
    "cannot be compared."
)
_OF_BLOCKS = (
    "Not in the paper: Dong et al. 2021 show that attention alone lowers the rank of tokens, and "
    "that MLPs work against it. The value is the mean change of the effective rank of tokens over "
    "MLPs minus the mean change over MSAs; blocks that subsample or change the channels are left "
    "out. The claim holds if it is above zero."
)


def _falls(points: pd.DataFrame) -> Finding | None:
    known = points.dropna(subset="effective_rank")
    sizes = known[["height", "width", "channels"]].drop_duplicates()
    if len(sizes) != 1 or len(known) < 3 or known["effective_rank"].nunique() == 1:
        return None
    return Finding(-float(spearmanr(known["depth"], known["effective_rank"]).statistic))


def _mlps_over_msas(points: pd.DataFrame) -> Finding | None:
    alike = (points["channels"].diff() == 0) & ~points["subsampling"]
    changes = points["effective_rank"].diff()[alike]
    means = changes.groupby(points["kind"]).mean()
    if not {"msa", "mlp"} <= set(means.dropna().index):
        return None
    return Finding(float(means["mlp"] - means["msa"]))


def _of_tokens(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    return in_order(rows[rows["of"] == TOKENS], blocks)


CLAIMS = {
    "effective_rank": Evidence(
        TABLE,
        (
            Claim(
                "rank_of_tokens_falls",
                "The effective rank of tokens falls with depth",
                "Dong et al. 2021",
                "rank correlation of depth and falling effective rank",
                _OF_DEPTH,
                attending,
                _falls,
                holds_above=0,
            ),
            Claim(
                "msas_lower_the_rank",
                "MSAs lower the effective rank of tokens, or raise it less than MLPs do",
                "Dong et al. 2021",
                "difference of changes",
                _OF_BLOCKS,
                attending,
                _mlps_over_msas,
                holds_above=0,
            ),
        ),
        _of_tokens,
    )
}
