"""The claim that tokens of high norm have lost what they knew of their place."""

import pandas as pd

from vitscope.claims.claim import Evidence, Finding, attending, claim
from vitscope.measures.probe.table import PIXELS, POSITION


@claim(
    "Outliers among the tokens know less of their place",
    "Darcet et al. 2024",
    "difference of shares that are read",
    attending,
    holds_above=0,
)
def outliers_know_less_of_their_place(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Darcet et al. 2024 find that neither position nor pixels are read as well
    from tokens of high norm as from others. Counted at the cut point with the most outliers. The
    value is the share that is read of other tokens minus the one of outliers, of the position or of
    the pixels, whichever differs less; the claim holds if it is above zero. A model with fewer than
    ten images with outliers among the drawn tokens has no such claim.
    """
    known = points.dropna(subset="difference")
    known = known[known.groupby("index")["target"].transform("nunique") == len({POSITION, PIXELS})]
    if known.empty:
        return None
    # Of both targets there are as many outliers; the first cut point of the most.
    most = known.sort_values("outliers", ascending=False, kind="stable")[:2]
    least = most.sort_values("difference").to_dict("records")[0]
    interval = least["difference_low"], least["difference_high"]
    return Finding(least["difference"], interval=interval)


def _measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(["index", "target"], ignore_index=True)


CLAIMS = {"probe_tokens": Evidence("probe_tokens", (outliers_know_less_of_their_place,), _measured)}
