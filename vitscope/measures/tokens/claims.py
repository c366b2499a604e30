from dataclasses import replace

import numpy as np

from vitscope.claims.claim import Claim, Evidence, attending, in_order
from vitscope.claims.points import Points
from vitscope.claims.statistics import (
    Found,
    Statistic,
    changes_more,
    compare_kinds,
    grows_with_depth,
)
from vitscope.measures.tokens.measure import TOKENS

_SIMILARITY = "similarity", "similarity of tokens"

CLAIMS_TOKEN_SIMILARITY = Evidence(
    "token_similarity",
    (
        Claim(
            "tokens_become_alike",
            "Tokens become more alike with depth",
            "Gong et al. 2021",
            attending,
            grows_with_depth(*_SIMILARITY),
            "Not in the paper: Gong et al. 2021 and others find that the tokens of a vision "
            "transformer become more similar with depth (oversmoothing).",
        ),
        Claim(
            "msas_make_tokens_alike",
            "MSAs make tokens more alike than MLPs do",
            "Dong et al. 2021",
            attending,
            changes_more(*_SIMILARITY, "msa", "mlp"),
            "Not in the paper: Dong et al. 2021 show that attention alone makes tokens "
            "similar, and that MLPs work against it.",
        ),
    ),
    in_order,
)

_SHARE = "share", "share of the mean token in the energy of all tokens"

CLAIMS_MEAN_TOKEN = Evidence(
    "mean_token",
    (
        Claim(
            "mean_token_takes_over",
            "The mean token takes a larger share with depth",
            "Wang et al. 2022",
            attending,
            grows_with_depth(*_SHARE),
            "Not in the paper: Wang et al. 2022 find that the tokens of a vision transformer "
            "lose what is not in their mean with depth (oversmoothing).",
        ),
        Claim(
            "msas_raise_the_mean_token",
            "MSAs raise the share of the mean token more than MLPs do",
            "Wang et al. 2022",
            attending,
            changes_more(*_SHARE, "msa", "mlp"),
            "Not in the paper: Wang et al. 2022 show that attention is a low-pass filter, "
            "which alone would leave nothing but the mean token.",
        ),
    ),
    in_order,
)


_VALUE = "effective_rank"
_FALL = grows_with_depth(_VALUE, "effective rank of tokens", sign=-1)


def _fall_of_rank(points: Points) -> Found | None:
    """Return how much the rank falls with depth; None if maps differ in size or channels."""
    sizes = points.known(_VALUE).frame[["height", "width", "channels"]].drop_duplicates()
    return _FALL.find(points) if len(sizes) < 2 else None


def _rank_change_of_mlps_over_msas(points: Points) -> Found | None:
    alike = (points.frame["channels"].diff() == 0) & ~points.frame["subsampling"]
    kept = alike.to_numpy()[1:]
    changed = np.diff(points[_VALUE], axis=1)[:, kept]
    return compare_kinds(changed, points.frame["kind"].to_numpy()[1:][kept], "mlp", "msa")


CLAIMS_EFFECTIVE_RANK = Evidence(
    "singular_values",
    (
        Claim(
            "rank_of_tokens_falls",
            "The effective rank of tokens falls with depth",
            "Dong et al. 2021",
            attending,
            replace(
                _FALL,
                find=_fall_of_rank,
                rule=f"{_FALL.rule} Networks whose maps change their size or their channels "
                "have no such claim: their ranks cannot be compared.",
            ),
            "Not in the paper: Dong et al. 2021 show that the rank of tokens collapses with "
            "depth in attention without shortcuts and MLPs, and that both work against it, so "
            "that it need not fall.",
        ),
        Claim(
            "msas_lower_the_rank",
            "MSAs lower the effective rank of tokens, or raise it less than MLPs do",
            "Dong et al. 2021",
            attending,
            Statistic(
                "difference of changes",
                "The value is the mean change of the effective rank of tokens over MLPs minus the "
                "mean change over MSAs; blocks that subsample or change the channels are left out.",
                _rank_change_of_mlps_over_msas,
            ),
            "Not in the paper: Dong et al. 2021 show that attention alone lowers the rank of "
            "tokens, and that MLPs work against it.",
        ),
    ),
    lambda rows, blocks: in_order(rows[rows["of"] == TOKENS], blocks),
)
