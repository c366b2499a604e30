"""Claims about the eigenvalues of the Hessian: how many are negative, how large the others.

Their points are eigenvalues, each with a weight: one if it was measured; of a published density,
the part of its area. Fig. 1c, 4, 6, 7 and 12c.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from vitscope.claims.alike import (
    global_against_local,
    less_against_more_data,
    small_against_large_patches,
    token_against_mean,
)
from vitscope.claims.chance import Interval, difference_interval, share_interval, with_width
from vitscope.claims.claim import (
    Claim,
    Evidence,
    Finding,
    attending,
    attention_against_convolution,
    claim,
)
from vitscope.claims.comparing import difference
from vitscope.files.arrays import Array
from vitscope.measures.intervals import TAILS, bootstrap_means

# Of the interval over batches; the batches of each of two models are resampled by its own seed.
RESAMPLES = 2000
_SEEDS = (0, 1)

_RULE = (
    "The paper's Fig. 1c and Fig. 4, and Fig. 6 and 7. The largest eigenvalues by magnitude of "
    "every batch, at each snapshot of the figure: the share of negative eigenvalues, of the first "
    "model minus that of the second, and the mean base-10 logarithm of the positive ones, of the "
    "convolutional model minus that of the first. Two models with MSAs are compared where one has "
    "a class token and the other none (`class_token`), one a window of attention and the other "
    "none (`attention_window`), one smaller patches than the other (`patch_size`), or one less "
    "training data than the other (`training.images`, with its epochs), and nothing else of their "
    "networks and trainings differs. Claims hold above zero, the claim about a single model above "
    "one in a hundred. A single eigenvalue may decide: the interval is a bootstrap over batches, "
    "and too narrow with few batches; of a model whose resamples are all equal, the share has "
    "Wilson's interval. Published shares are areas under the published densities."
)


def _published(points: pd.DataFrame) -> pd.DataFrame:
    panels = [panel.sort_values("eigenvalue") for _, panel in points.groupby("panel")]
    weights = [panel["density"] * np.gradient(panel["eigenvalue"]) for panel in panels]
    return pd.concat(panels)[["eigenvalue"]].assign(weight=pd.concat(weights))


# Both numbers that are claimed of a spectrum are the ratio of two sums over its eigenvalues. A
# function of this type returns what each eigenvalue adds: to the `upper` sum, and to the `lower`.
Terms = Callable[[pd.DataFrame], pd.DataFrame]


def _negative_share(points: pd.DataFrame) -> pd.DataFrame:
    """Return the terms of the share of eigenvalues that are negative."""
    weight = points["weight"]
    return pd.DataFrame({"upper": weight.where(points["eigenvalue"] < 0, 0.0), "lower": weight})


def _positive_decades(points: pd.DataFrame) -> pd.DataFrame:
    """Return the terms of the mean base-10 logarithm of the positive eigenvalues."""
    positive = points["eigenvalue"].where(points["eigenvalue"] > 0)
    weight = points["weight"].where(positive.notna(), 0.0)
    return pd.DataFrame({"upper": (weight * np.log10(positive)).fillna(0.0), "lower": weight})


def _ratio(terms: pd.DataFrame) -> float | None:
    upper, lower = terms.sum()
    return float(upper / lower) if lower else None


def _counts(points: pd.DataFrame) -> tuple[int, int]:
    """Return how many eigenvalues are negative, and how many there are."""
    upper, lower = _negative_share(points).sum()
    return round(upper), round(lower)


def interval_over_batches(value: Callable[[Array], Array], *batches: Array) -> Interval | None:
    """Return the 95 % interval of a value of means over batches, or of one model's minus another's.

    There is none of a single batch, or where a resample has no value.
    """
    if min(map(len, batches)) < 2:
        return None
    resampled = zip(batches, _SEEDS, strict=False)
    values = [value(bootstrap_means(each, RESAMPLES, seed)) for each, seed in resampled]
    found = values[0] if len(values) == 1 else values[0] - values[1]
    low, high = np.percentile(found, TAILS)
    return (float(low), float(high)) if np.isfinite(found).all() else None


def _interval(terms: Terms, *spectra: pd.DataFrame) -> Interval | None:
    """Return the interval of a ratio, or of one minus another; none of a published density."""
    if not all("batch" in points for points in spectra):
        return None
    batches = [terms(points).groupby(points["batch"]).sum().to_numpy() for points in spectra]
    return interval_over_batches(_ratios, *batches)


def _ratios(means: Array) -> Array:
    upper, lower = means.T
    ratios: Array = np.divide(upper, lower, out=np.full_like(upper, np.nan), where=lower > 0)
    return ratios


def _difference(terms: Terms, more: pd.DataFrame, less: pd.DataFrame) -> Finding | None:
    found = difference(_ratio(terms(more)), _ratio(terms(less)))
    return found and replace(found, interval=_interval(terms, more, less))


def _of_share(points: pd.DataFrame) -> Interval | None:
    """Return the interval of the share of negative eigenvalues."""
    found = _interval(_negative_share, points)
    return found and with_width(found, *_counts(points))


def _of_difference(ours: pd.DataFrame, theirs: pd.DataFrame) -> Interval | None:
    """Return the interval of a difference of shares: Newcombe's where that of one is Wilson's."""
    one, other = (_of_share(points) for points in (ours, theirs))
    wilson = [share_interval(*_counts(points)) for points in (ours, theirs)]
    if one is None or other is None or (one != wilson[0] and other != wilson[1]):
        return _interval(_negative_share, ours, theirs)
    (a, m), (b, n) = _counts(ours), _counts(theirs)
    return difference_interval((a / m, one), (b / n, other))


@claim(
    "The Hessian of MSAs has negative eigenvalues",
    "Fig. 4",
    "share of eigenvalues",
    attending,
    rule=_RULE,
    holds_above=0.01,
)
def msa_has_negative_eigenvalues(points: pd.DataFrame) -> Finding | None:
    """Find the share of negative eigenvalues; in a published density there are none to count."""
    share = _ratio(_negative_share(points))
    if share is None or "batch" not in points:
        return None if share is None else Finding(share)
    return Finding(share, *_counts(points), interval=_of_share(points))


def _more_negative(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Find by how much the first model has the larger share of negative eigenvalues."""
    found = _difference(_negative_share, ours, theirs)
    if found is None or not all("batch" in points for points in (ours, theirs)):
        return found
    count, total = _counts(ours)
    interval = _of_difference(ours, theirs)
    return replace(found, count=count, total=total, versus=_counts(theirs), interval=interval)


@claim(
    "Positive eigenvalues of the Hessian of MSAs are smaller than those of Convs",
    "Fig. 1c, Fig. 4",
    "difference of mean magnitude in decades",
    attention_against_convolution,
    rule=_RULE,
    holds_above=0,
)
def msa_has_smaller_positive_eigenvalues(
    ours: pd.DataFrame, theirs: pd.DataFrame
) -> Finding | None:
    """Find by how many decades the first model has the smaller positive eigenvalues."""
    return _difference(_positive_decades, theirs, ours)


_of_two = partial(
    Claim,
    measure="difference of the share of eigenvalues",
    rule=_RULE,
    find=_more_negative,
    holds_above=0,
)

CLAIMS = {
    "hessian": Evidence(
        "hessian",
        (
            msa_has_negative_eigenvalues,
            _of_two(
                "msa_has_more_negative_eigenvalues",
                "The Hessian of MSAs has more negative eigenvalues than that of Convs",
                "Fig. 4",
                about=attention_against_convolution,
            ),
            msa_has_smaller_positive_eigenvalues,
            _of_two(
                "less_data_has_more_negative_eigenvalues",
                "Less training data leaves MSAs with more negative eigenvalues",
                "Fig. 4",
                about=less_against_more_data,
            ),
            _of_two(
                "class_token_has_more_negative_eigenvalues",
                "A class token leaves more negative eigenvalues than GAP does",
                "Fig. 6",
                about=token_against_mean,
            ),
            _of_two(
                "global_attention_has_more_negative_eigenvalues",
                "Global attention has more negative eigenvalues than local attention",
                "Fig. 7",
                about=global_against_local,
            ),
            _of_two(
                "small_patches_have_more_negative_eigenvalues",
                "Smaller patches leave more negative eigenvalues",
                "appendix",
                about=small_against_large_patches,
            ),
        ),
        lambda rows, _: rows[["batch", "eigenvalue"]].assign(weight=1.0),
        _published,
    )
}
