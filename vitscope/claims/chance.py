"""What chance could say of a claim: intervals of shares, and verdicts that know them."""

from math import hypot
from typing import Literal

Verdict = Literal["yes", "no", "undecided"]
Interval = tuple[float, float]
# A value, and its interval.
Estimate = tuple[float, Interval]

CONFIDENCE = 0.95


def share_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a share that is counted (Wilson 1927)."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def difference_interval(more: Estimate, less: Estimate) -> Interval:
    """Return the 95 % interval of the difference of two values that have one each (Newcombe 1998).

    It is for independent values. Where both are of the same images, which models find hard alike,
    it is too wide rather than too narrow.
    """
    (a, (a_low, a_high)), (b, (b_low, b_high)) = more, less
    return a - b - hypot(a - a_low, b_high - b), a - b + hypot(a_high - a, b - b_low)


def verdict(value: float, above: float, interval: Interval | None) -> Verdict:
    """Tell whether a value is above a number, or undecided if its interval contains that number."""
    if interval is not None and interval[0] <= above <= interval[1]:
        return "undecided"
    return "yes" if value > above else "no"
