"""Claims about oversmoothing: tokens become more alike with depth, and by which blocks."""

import pandas as pd
from scipy.stats import spearmanr

from vitscope.claims.by_block import in_order
from vitscope.claims.claim import Claim, Finding, attending
from vitscope.claims.evidence import Evidence
from vitscope.measures.token_similarity.table import TABLE

_OF_DEPTH = (
    "Not in the paper: Gong et al. 2021 and others find that the tokens of a vision transformer "
    "become more similar with depth (oversmoothing). The value is the rank correlation (Spearman) "
    "between depth and the similarity of tokens, over all cut points; the claim holds if it is "
    "above zero."
)
_OF_BLOCKS = (
    "Not in the paper: Dong et al. 2021 show that attention alone makes tokens similar, and that "
    "MLPs work against it. The value is the mean change of the similarity over MSAs minus the "
    "mean change over MLPs; blocks that subsample are left out. The claim holds if it is above "
    "zero."
)


def _with_depth(points: pd.DataFrame) -> Finding | None:
    known = points.dropna(subset="similarity")
    if len(known) < 3 or known["similarity"].nunique() == 1:
        return None
    return Finding(float(spearmanr(known["depth"], known["similarity"]).statistic))


def _msas_over_mlps(points: pd.DataFrame) -> Finding | None:
    changes = points["similarity"].diff()[~points["subsampling"]]
    means = changes.groupby(points["kind"]).mean()
    if not {"msa", "mlp"} <= set(means.dropna().index):
        return None
    return Finding(float(means["msa"] - means["mlp"]))


CLAIMS = {
    "token_similarity": Evidence(
        TABLE,
        (
            Claim(
                "tokens_become_alike",
                "Tokens become more alike with depth",
                "Gong et al. 2021",
                "rank correlation of similarity and depth",
                _OF_DEPTH,
                attending,
                _with_depth,
                holds_above=0,
            ),
            Claim(
                "msas_make_tokens_alike",
                "MSAs make tokens more alike than MLPs do",
                "Dong et al. 2021",
                "difference of changes",
                _OF_BLOCKS,
                attending,
                _msas_over_mlps,
                holds_above=0,
            ),
        ),
        in_order,
    )
}
