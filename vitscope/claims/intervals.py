"""Intervals of claims: their confidence, how they are computed, and the columns for resamples."""

from math import isfinite, sqrt
from typing import TYPE_CHECKING, Literal

# Declarations of tables import this module, and need no arrays.
if TYPE_CHECKING:
    import pandas as pd

    from vitscope.files.arrays import Array

Interval = tuple[float, float]
# Whether a value of a network or a recipe is above a number; "open" if chance may decide.
Says = Literal["yes", "no", "open"]

CONFIDENCE = 0.95
# The percentiles at the ends of an interval of this confidence.
TAILS = (2.5, 97.5)
# The number of resamples of the images in which tables list a value, besides the value itself.
# Models with equally many images share resamples.
KEPT = 400
# The fewest values whose median has a 95 % interval: five all lie on one side by chance in one of
# 16 draws.
FEWEST_OF_MEDIAN = 6
# The ending of the columns with these lists, from which claims take their intervals.
RESAMPLED = "_resampled"


def without_resamples(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Drop the columns of values in resamples, which only claims need."""
    return frame[[name for name in frame if not str(name).endswith(RESAMPLED)]]


def share_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a share of images (Wilson 1927)."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def batch_share_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a share of few batches (Clopper and Pearson 1934)."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(CONFIDENCE, method="exact")
    return float(found.low), float(found.high)


def known_share_interval(share: float, total: int) -> Interval:
    """Return the 95 % interval of a share of `total` images, of which no count is known."""
    return share_interval(round(share * total), total)


def resampled_interval(resampled: "Array") -> Interval | None:
    """Return the 95 % interval of a value from its resamples; None if any of them is undefined."""
    import numpy as np

    if not np.isfinite(resampled).all():
        return None
    low, high = np.percentile(resampled, TAILS)
    return float(low), float(high)


def mean_interval(values: "Array") -> Interval | None:
    """Return Student's 95 % interval of the mean of values; None if all values are equal."""
    import numpy as np
    from scipy.stats import t

    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    if not (isfinite(spread) and spread):
        return None
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread / sqrt(len(values))
    mean = float(np.mean(values))
    return mean - half, mean + half


def median_interval(values: "Array") -> Interval | None:
    """Return a 95 % interval of the median of values, whatever they are distributed like.

    Its ends are two of the values, as far inside as the binomial distribution allows; None if there
    are too few values.
    """
    import numpy as np
    from scipy.stats import binom

    outside = int(binom.ppf((1 - CONFIDENCE) / 2, len(values), 0.5))
    # As many of the smallest and of the largest values lie outside.
    if 2 * binom.cdf(outside, len(values), 0.5) > 1 - CONFIDENCE:
        outside -= 1
    if outside < 0 or not np.isfinite(values).all():
        return None
    ordered = np.sort(values)
    return float(ordered[outside]), float(ordered[-1 - outside])


def independent_interval(ours: "Array", theirs: "Array") -> Interval | None:
    """Return the 95 % interval of the difference of two means (Welch 1947); None if undefined."""
    import numpy as np
    from scipy.stats import ttest_ind

    if min(len(ours), len(theirs)) < 2 or not np.ptp(ours) + np.ptp(theirs):
        return None
    low, high = ttest_ind(ours, theirs, equal_var=False).confidence_interval(CONFIDENCE)
    return float(low), float(high)


def decide_by_interval(value: float, above: float, interval: Interval | None) -> Says:
    """Say "yes" if a value and its interval exceed `above`, "no" if both are below, else "open"."""
    if interval is None:
        return "open"
    # Check the value, too: resamples of few cases may all lie on one side of the value.
    if min(value, interval[0]) > above:
        return "yes"
    return "no" if max(value, interval[1]) < above else "open"
