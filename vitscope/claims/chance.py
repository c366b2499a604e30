"""Tell claims from chance: p-values, false discovery rates, and verdicts on a single network."""

from typing import Literal

import numpy as np

from vitscope.claims.intervals import Says
from vitscope.files.arrays import Array

# Without an interval it is unknown how much of a value is chance: the verdict says so.
OfNetwork = Literal[Says, "yes, without an interval", "no, without an interval"]

# The fewest batches whose mean gets an interval: values of batches are distributed too unevenly.
LEAST_BATCHES = 20
LEAST_TRAININGS = 3


def resampled_chance(resampled: Array, above: float) -> float:
    """Return the two-sided p-value of a value, from its resamples, against the number `above`."""
    beyond = min(np.sum(resampled <= above), np.sum(resampled >= above))
    return min(1.0, float(2 * (1 + beyond) / (1 + len(resampled))))


def mean_chance(values: Array, above: float) -> float:
    """Return the two-sided p-value of the mean of values against `above`, by Student's test."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(values, above).pvalue)


def median_chance(values: Array, above: float) -> float:
    """Return the two-sided p-value that half of all values are above a number (sign test).

    Values equal to the number say nothing; if all are, the p-value is 1.
    """
    from scipy.stats import binomtest

    others = values[values != above]
    return float(binomtest(int(np.sum(others > above)), len(others)).pvalue) if len(others) else 1.0


def independent_chance(ours: Array, theirs: Array, above: float) -> float:
    """Return the two-sided p-value of the difference of two means against `above` (Welch)."""
    from scipy.stats import ttest_ind

    return float(ttest_ind(ours - above, theirs, equal_var=False).pvalue)


def false_discovery_rates(chances: Array) -> Array:
    """Return the false discovery rate of each p-value (Benjamini, Hochberg 1995); NaN stays NaN."""
    from scipy.stats import false_discovery_control

    found, tested = np.full(len(chances), np.nan), np.isfinite(chances)
    if tested.any():
        found[tested] = false_discovery_control(chances[tested], method="bh")
    return found
