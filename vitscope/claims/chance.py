"""What chance could say of a claim: intervals of shares, and verdicts that know them."""

from typing import Literal

Verdict = Literal["yes", "no", "undecided"]
Interval = tuple[float, float]

CONFIDENCE = 0.95


def share_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a share that is counted (Wilson 1927)."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def verdict(value: float, above: float, interval: Interval | None) -> Verdict:
    """Tell whether a value is above a number, or undecided if its interval contains that number."""
    if interval is not None and interval[0] <= above <= interval[1]:
        return "undecided"
    return "yes" if value > above else "no"
