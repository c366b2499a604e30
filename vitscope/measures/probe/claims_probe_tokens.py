"""The claim that tokens of high norm have lost what they knew of their place."""

from vitscope.claims.claim import Claim, Evidence, attending
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, value_of
from vitscope.measures.probe.table import PIXELS, POSITION


def _least_difference(points: Points) -> Found | None:
    """Find the lesser of both differences where there are the most outliers."""
    known = points.known("difference")
    targets = known.frame.groupby("index")["target"].transform("nunique")
    both = known.where(targets == len({POSITION, PIXELS}))
    if not len(both):
        return None
    # Both targets have as many outliers; the first cut point of the most.
    index, outliers = (both.frame[name].to_numpy() for name in ("index", "outliers"))
    there = both.where(index == index[outliers.argmax()])
    return value_of(there["difference"].min(axis=1))


CLAIMS_PROBE_TOKENS = Evidence(
    "probe_tokens",
    (
        Claim(
            "outliers_know_less_of_their_place",
            "Outliers among the tokens know less of their place",
            "Darcet et al. 2024",
            attending,
            Statistic(
                "difference of shares that are read",
                "Counted at the cut point with the most outliers. The value is the share that "
                "is read of other tokens minus the one of outliers, of the position or of the "
                "pixels, whichever differs less. A model with fewer than ten images with "
                "outliers among the drawn tokens has no such claim.",
                _least_difference,
            ),
            "Not in the paper: Darcet et al. 2024 find that neither position nor pixels are "
            "read as well from tokens of high norm as from others.",
        ),
    ),
    lambda rows, _: rows.sort_values(["index", "target"], ignore_index=True),
)
