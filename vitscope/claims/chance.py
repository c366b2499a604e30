"""Chance in claims: intervals over images, batches and trainings, p-values, and verdicts."""

from math import isfinite, sqrt
from typing import Literal

import numpy as np

from vitscope.claims.intervals import CONFIDENCE, TAILS
from vitscope.files.arrays import Array

# Whether a value of a network or a recipe is above a number; "open" if chance may decide.
Says = Literal["yes", "no", "open"]
# Without an interval it is unknown how much of a value is chance: the verdict says so.
OfNetwork = Literal[Says, "yes, without an interval", "no, without an interval"]
Interval = tuple[float, float]

# A mean over fewer batches gets no interval: values of batches are distributed too unevenly.
LEAST_BATCHES = 20
LEAST_TRAININGS = 3


def share_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a share of images (Wilson 1927)."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def known_share_interval(share: float, total: int) -> Interval:
    """Return the 95 % interval of a share of `total` images, of which no count is known."""
    return share_interval(round(share * total), total)


def resampled_interval(resampled: Array) -> Interval | None:
    """Return the 95 % interval of a value from its resamples; None if any of them is undefined."""
    if not np.isfinite(resampled).all():
        return None
    low, high = np.percentile(resampled, TAILS)
    return float(low), float(high)


def mean_interval(values: Array) -> Interval | None:
    """Return Student's 95 % interval of the mean of values; None if all values are equal."""
    from scipy.stats import t

    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    if not (isfinite(spread) and spread):
        return None
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread / sqrt(len(values))
    mean = float(np.mean(values))
    return mean - half, mean + half


def independent_interval(ours: Array, theirs: Array) -> Interval | None:
    """Return the 95 % interval of the difference of two means (Welch 1947); None if undefined."""
    from scipy.stats import ttest_ind

    if min(len(ours), len(theirs)) < 2 or not np.ptp(ours) + np.ptp(theirs):
        return None
    low, high = ttest_ind(ours, theirs, equal_var=False).confidence_interval(CONFIDENCE)
    return float(low), float(high)


def resampled_chance(resampled: Array, above: float) -> float:
    """Return the two-sided p-value of a value, from its resamples, against the number `above`."""
    beyond = min(np.sum(resampled <= above), np.sum(resampled >= above))
    return min(1.0, float(2 * (1 + beyond) / (1 + len(resampled))))


def mean_chance(values: Array, above: float) -> float:
    """Return the two-sided p-value of the mean of values against `above`, by Student's test."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(values, above).pvalue)


def independent_chance(ours: Array, theirs: Array, above: float) -> float:
    """Return the two-sided p-value of the difference of two means against `above` (Welch)."""
    from scipy.stats import ttest_ind

    return float(ttest_ind(ours - above, theirs, equal_var=False).pvalue)


def decide_by_interval(value: float, above: float, interval: Interval | None) -> Says:
    """Say "yes" if a value and its interval exceed `above`, "no" if both are below, else "open"."""
    if interval is None:
        return "open"
    # Check the value, too: resamples of few cases may all lie on one side of the value.
    if min(value, interval[0]) > above:
        return "yes"
    return "no" if max(value, interval[1]) < above else "open"


def false_discovery_rates(chances: Array) -> Array:
    """Return the false discovery rate of each p-value (Benjamini, Hochberg 1995); NaN stays NaN."""
    from scipy.stats import false_discovery_control

    found, tested = np.full(len(chances), np.nan), np.isfinite(chances)
    if tested.any():
        found[tested] = false_discovery_control(chances[tested], method="bh")
    return found
