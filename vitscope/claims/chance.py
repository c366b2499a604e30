"""What chance could say of a claim: intervals of shares, and verdicts that know them."""

from math import atanh, hypot, isclose, sqrt, tanh
from typing import Literal

Verdict = Literal["yes", "no", "undecided", "yes, without an interval", "no, without an interval"]
Interval = tuple[float, float]
# A value, and its interval.
Estimate = tuple[float, Interval]

CONFIDENCE = 0.95
# Of fewer points, the interval of a rank correlation is not what it says.
LEAST_POINTS = 10


def share_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a share that is counted (Wilson 1927)."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def known_share_interval(share: float, total: int) -> Interval:
    """Return the 95 % interval of a share of so many, where that is known and not the count."""
    return share_interval(round(share * total), total)


def with_width(interval: Interval, count: int, total: int) -> Interval:
    """Return the interval of a share by bootstrap, or Wilson's where all resamples are equal.

    They are where all or none of the few that are counted are in favour, by chance or not.
    """
    return share_interval(count, total) if interval[0] == interval[1] else interval


def difference_interval(more: Estimate, less: Estimate) -> Interval:
    """Return the 95 % interval of the difference of two values that have one each (Newcombe 1998).

    It is for independent values. Where both are of the same images, which models find hard alike,
    it is too wide rather than too narrow.
    """
    (a, (a_low, a_high)), (b, (b_low, b_high)) = more, less
    return a - b - hypot(a - a_low, b_high - b), a - b + hypot(a_high - a, b - b_low)


def correlation_interval(correlation: float, points: int) -> Interval | None:
    """Return the 95 % interval of a rank correlation (Spearman), by Fisher's z.

    The variance of z is that of Bonett and Wright (2000). Few points have no interval, nor have
    ranks in perfect order, whose z is infinite.
    """
    from scipy.stats import norm

    if points < LEAST_POINTS or isclose(abs(correlation), 1):
        return None
    deviation = sqrt((1 + correlation**2 / 2) / (points - 3))
    width = float(norm.ppf((1 + CONFIDENCE) / 2)) * deviation
    return tanh(atanh(correlation) - width), tanh(atanh(correlation) + width)


def verdict(value: float, above: float, interval: Interval | None) -> Verdict:
    """Tell whether a value is above a number, or undecided if its interval contains that number.

    Of a value without an interval, nobody knows what chance could say: its verdict says so.
    """
    if interval is None:
        return "yes, without an interval" if value > above else "no, without an interval"
    if interval[0] <= above <= interval[1]:
        return "undecided"
    return "yes" if value > above else "no"
