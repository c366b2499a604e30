from dataclasses import replace

import numpy as np

from vitscope.claims.claim import Claim, Evidence, attending, in_order
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, compare_kinds, grows_with_depth
from vitscope.measures.singular_values.measure import TOKENS

_VALUE = "effective_rank"
_FALL = grows_with_depth(_VALUE, "effective rank of tokens", sign=-1)


def _fall(points: Points) -> Found | None:
    """Find how the rank falls with depth; None if maps differ in size or channels."""
    sizes = points.known(_VALUE).frame[["height", "width", "channels"]].drop_duplicates()
    return _FALL.find(points) if len(sizes) < 2 else None


def _excess_of_mlps(points: Points) -> Found | None:
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
                find=_fall,
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
                _excess_of_mlps,
            ),
            "Not in the paper: Dong et al. 2021 show that attention alone lowers the rank of "
            "tokens, and that MLPs work against it.",
        ),
    ),
    lambda rows, blocks: in_order(rows[rows["of"] == TOKENS], blocks),
)
