"""What chance could say of a claim: intervals over images, batches and trainings, and verdicts."""

from math import isfinite, sqrt
from typing import Literal

import numpy as np

from vitscope.files.arrays import Array
from vitscope.measures.per_image import CONFIDENCE, TAILS

# What a value says of one network, or of a recipe: is it above a number, or could chance decide?
Says = Literal["yes", "no", "open"]
# Without an interval, nobody knows what chance could say.
OfNetwork = Literal[Says, "yes, without an interval", "no, without an interval"]
Interval = tuple[float, float]

# A mean over fewer batches has no interval: their distribution is too skewed to be known by it.
LEAST_BATCHES = 20
# Seeds that a verdict on a recipe takes.
LEAST_TRAININGS = 3


def share_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a share of images (Wilson 1927)."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def known_share_interval(share: float, total: int) -> Interval:
    """Return the same where the share of so many images is known, and not the count."""
    return share_interval(round(share * total), total)


def resampled_interval(resampled: Array) -> Interval | None:
    """Return the 95 % interval of a value from its values in resamples; None if one has none."""
    if not np.isfinite(resampled).all():
        return None
    low, high = np.percentile(resampled, TAILS)
    return float(low), float(high)


def mean_interval(values: Array) -> Interval | None:
    """Return Student's 95 % interval of the mean of values; None where they do not differ."""
    from scipy.stats import t

    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    if not (isfinite(spread) and spread):
        return None
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread / sqrt(len(values))
    mean = float(np.mean(values))
    return mean - half, mean + half


def independent_interval(ours: Array, theirs: Array) -> Interval | None:
    """Return the 95 % interval of the mean of values minus that of others (Welch 1947).

    None where neither of them differ.
    """
    from scipy.stats import ttest_ind

    if min(len(ours), len(theirs)) < 2 or not np.ptp(ours) + np.ptp(theirs):
        return None
    low, high = ttest_ind(ours, theirs, equal_var=False).confidence_interval(CONFIDENCE)
    return float(low), float(high)


def resampled_chance(resampled: Array, above: float) -> float:
    """Return the probability, two-sided, that resamples give to the other side of a number."""
    beyond = min(np.sum(resampled <= above), np.sum(resampled >= above))
    return min(1.0, float(2 * (1 + beyond) / (1 + len(resampled))))


def mean_chance(values: Array, above: float) -> float:
    """Return the same of the mean of values, by Student's test."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(values, above).pvalue)


def independent_chance(ours: Array, theirs: Array, above: float) -> float:
    """Return the same of the mean of values minus that of others, by Welch's test."""
    from scipy.stats import ttest_ind

    return float(ttest_ind(ours - above, theirs, equal_var=False).pvalue)


def decide(value: float, above: float, interval: Interval | None) -> Says:
    """Tell whether a value and all of its interval are above a number, or below it; else open.

    Resamples of few cases may lie to one side of what was measured.
    """
    if interval is None:
        return "open"
    if min(value, interval[0]) > above:
        return "yes"
    return "no" if max(value, interval[1]) < above else "open"


def false_discovery_rates(chances: Array) -> Array:
    """Return for each of several tests the rate of false ones among those as sure (Benjamini and
    Hochberg 1995); NaN stays where nothing was tested.
    """
    from scipy.stats import false_discovery_control

    found, tested = np.full(len(chances), np.nan), np.isfinite(chances)
    if tested.any():
        found[tested] = false_discovery_control(chances[tested], method="bh")
    return found
