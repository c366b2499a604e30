"""What is counted for a claim: shares of blocks, trends with depth, differences.

Each value is computed as measured and in each resample of the images, which gives its interval.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vitscope.claims import chance, intervals
from vitscope.claims.chance import OfNetwork
from vitscope.claims.intervals import TAILS, Interval, decide_by_interval
from vitscope.claims.points import Points
from vitscope.files.arrays import Array

# A claim that counts cases holds if more than this share of them support it.
HALF = 0.5


@dataclass(frozen=True)
class Found:
    """What points say about a claim: `values` has the value as measured, then in each resample.

    A share has the `count` of cases in favour and the `total` of cases, of which `certain` have a
    certain sign. Where batches are the units, `batches` are the values of each if the value is
    their mean, and `medians` if it is their median or the share of those in favour. `draws` are the
    values of two independent samples. A value is `exact` if it follows from weights alone. `beside`
    is what the statement of the claim adds, as of how many images batches are.
    Training runs are compared by `margin`, if it is given: by how much cases are in favour on
    average (in logarithms where a value is positive), or Fisher's z of a rank correlation.
    """

    values: Array
    count: int | None = None
    total: int | None = None
    certain: int | None = None
    margin: float | None = None
    batches: Array | None = None
    medians: Array | None = None
    draws: tuple[Array, Array] | None = None
    exact: bool = False
    beside: str = ""

    @property
    def value(self) -> float:
        return float(self.values[0])

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % interval of the value; None where it is not known."""
        if self.exact:
            return self.value, self.value
        if self.batches is not None:
            enough = len(self.batches) >= chance.LEAST_BATCHES
            return intervals.mean_interval(self.batches) if enough else None
        if self.medians is not None and self.count is not None:
            return intervals.batch_share_interval(self.count, len(self.medians))
        if self.medians is not None:
            return intervals.median_interval(self.medians)
        if self.draws is not None:
            return intervals.independent_interval(*self.draws)
        return intervals.resampled_interval(self.values[1:]) if len(self.values) > 1 else None

    def p_value_against(self, above: float) -> float:
        """Return the two-sided p-value of the value against a number, `above`; NaN if untested."""
        if self.exact or self.interval is None:
            return np.nan
        if self.batches is not None:
            return chance.mean_chance(self.batches, above)
        if self.medians is not None:
            return chance.median_chance(self.medians, above)
        if self.draws is not None:
            return chance.independent_chance(*self.draws, above)
        if self._all_certain and self.value == above:
            return 2 / len(self.values)
        return chance.resampled_chance(self.values[1:], above)

    @property
    def units(self) -> int | None:
        """How many batches the value is of; None if images are the units."""
        found = self.batches if self.medians is None else self.medians
        return None if found is None else len(found)

    @property
    def fewest(self) -> int:
        """The fewest batches that can decide."""
        return chance.LEAST_BATCHES if self.medians is None else intervals.FEWEST_OF_MEDIAN

    @property
    def _all_certain(self) -> bool:
        return self.certain is not None and self.certain == self.total

    def verdict(self, above: float) -> OfNetwork:
        """Tell whether the value is above a number in this network, whichever images are drawn."""
        if self.exact or self._all_certain:
            # No choice of images changes the answer, even for a value equal to the number.
            return "yes" if self.value > above else "no"
        if self.interval is not None:
            return decide_by_interval(self.value, above, self.interval)
        if self.units is not None:
            return "open"
        return "yes, without an interval" if self.value > above else "no, without an interval"


# Takes the points of one or two models and returns what they say; None if nothing can be counted.
Find = Callable[..., Found | None]


@dataclass(frozen=True)
class Statistic:
    """What is counted, and by which rule; a claim holds if the value is above `above`."""

    measure: str
    rule: str
    find: Find
    above: float = 0.0
    percent: bool = False

    @property
    def bound(self) -> str:
        """When a claim on this statistic holds, in words."""
        if self.percent and self.above == HALF:
            return "The claim holds if more than half are in favour."
        above = f"{100 * self.above:g} %" if self.percent else f"{self.above:g}"
        return f"The claim holds if this is above {'zero' if not self.above else above}."


def value_of(values: Array, **more: Any) -> Found | None:
    """Return what `values` (measured, then resampled) say; None if the first is not finite."""
    found = np.atleast_1d(values)
    return Found(found, **more) if np.isfinite(found[0]) else None


def exactly(found: Found | None) -> Found | None:
    """Mark a value as exact, since it follows from weights alone."""
    return found and replace(found, exact=True)


def share_of(margins: Array) -> Found | None:
    """Return the share of cases with a margin above zero; `margins` are (1 + resamples, cases).

    Cases whose measured margin is not finite do not count.
    """
    margins = margins[:, np.isfinite(margins[0])]
    total = margins.shape[1]
    if not total:
        return None
    in_favour = margins > 0
    certain = int(certain_signs(margins).sum()) if len(margins) > 1 else None
    margin = float(margins[0].mean())
    return Found(in_favour.mean(axis=1), int(in_favour[0].sum()), total, certain, margin)


def certain_signs(margins: Array) -> Array:
    """Return for each case whether its 95 % interval excludes zero, so that its sign is certain."""
    low, high = np.percentile(margins[1:], TAILS, axis=0)
    certain: Array = (low > 0) | (high < 0)
    return certain


def log_ratio(over: Array, under: Array) -> Array:
    """Return the logarithm of the ratio of values that are not negative; of zeros it is finite."""
    smallest = np.finfo(np.float64).tiny
    found: Array = np.log(np.maximum(over, smallest)) - np.log(np.maximum(under, smallest))
    return found


def changes(points: Points, value: str, kind: str | None, log: bool = False) -> Array:
    """Return a value's change over each block of `kind` or, for None, each subsampling block."""
    found: Array = change_over_each_block(points, value, log)[:, _which_blocks_count(points, kind)]
    return found


def change_over_each_block(points: Points, value: str, log: bool) -> Array:
    """Return a value's change over each block, (1 + resamples, blocks); for `log`, a log ratio.

    The resamples before and after a block are of the same images. By ratios, blocks where the value
    is large do not outweigh others.
    """
    values = points[value]
    before, after = values[:, :-1], values[:, 1:]
    return log_ratio(after, before) if log else after - before


def _which_blocks_count(points: Points, kind: str | None) -> Array:
    """Return for each block whether it is of `kind` or, for None, whether it subsamples."""
    subsampling = points.frame["subsampling"].to_numpy(bool)
    chosen: Array = subsampling
    if kind is not None:
        chosen = (points.frame["kind"].to_numpy() == kind) & ~subsampling
    return chosen[1:]


COUNTED = (
    "Blocks that subsample have a claim of their own and do not count in the others. Where blocks "
    "normalize the sum of stream and branch, values are read after that norm, unless `norms` of "
    "the model says before."
)
_BLOCKS = {
    "msa": "MSAs",
    "conv": "Convs that do not subsample",
    "mlp": "MLPs",
    None: "blocks that subsample",
}


def falls(kind: str | None, value: str, what: str, log: bool = False) -> Statistic:
    """Count the blocks of `kind`, subsampling blocks for None, after which a value is lower."""
    does = f"{what} is lower"
    return _share_of_blocks(kind, does, lambda points: -changes(points, value, kind, log))


def rises(kind: str | None, value: str, what: str, log: bool = False) -> Statistic:
    """Count the blocks of `kind`, subsampling blocks for None, after which a value is higher."""
    does = f"{what} is higher"
    return _share_of_blocks(kind, does, lambda points: changes(points, value, kind, log))


def falls_more(kind: str, value: str, what: str, log: bool = False) -> Statistic:
    """Count the blocks of a kind over which a value falls more than in the second model."""

    def falls_by_block(ours: Points, theirs: Points) -> Array | None:
        if len(ours) != len(theirs):
            return None
        both = (change_over_each_block(points, value, log) for points in (ours, theirs))
        one, other = paired(*both)
        found: Array = (other - one)[:, _which_blocks_count(ours, kind)]
        return found

    ratio = ", as a ratio," if log else ""
    rule = (
        f"A block is in favour if the {what}{ratio} falls more over it than over the block in its "
        f"place in the second model. {COUNTED}"
    )
    return share(f"share of {_BLOCKS[kind]}", rule, falls_by_block)


def _share_of_blocks(kind: str | None, does: str, margins: Callable[[Points], Array]) -> Statistic:
    blocks = _BLOCKS[kind]
    rule = f"A block is in favour if the {does} after it than before it. {COUNTED}"
    return share(f"share of {blocks}", rule, margins)


def share(measure: str, rule: str, margins: Callable[..., Array | None]) -> Statistic:
    """Count the cases in favour: those whose `margins`, (1 + resamples, cases), are above zero."""

    def share_found(*points: Points) -> Found | None:
        found = margins(*points)
        return None if found is None else share_of(found)

    return Statistic(measure, rule, share_found, HALF, percent=True)


# Resamples shuffle neighbours that hardly differ, so that the interval of a trend misses its value.
RANGE = (
    "In parentheses stands the range over resamples of the images: it tells the sign, but contains "
    "the correlation in all images less often than 95 % intervals do, where steps are small."
)


def grows_with_depth(value: str, what: str, sign: int = 1) -> Statistic:
    """Correlate the ranks of depth and a value over cut points; a `sign` of -1 asks for a fall."""

    def trend_found(points: Points) -> Found | None:
        known = points.known(value)
        return rank_correlation(known["depth"], sign * known[value])

    falling = "" if sign > 0 else ", with the sign changed"
    rule = (
        f"The value is the rank correlation (Spearman) of depth and the {what}{falling}, over all "
        f"cut points. {RANGE}"
    )
    return Statistic(f"rank correlation of depth and {what}{falling}", rule, trend_found)


def rank_correlation(x: Array, y: Array) -> Found | None:
    """Return the rank correlation (Spearman) of `x` and `y`, (1 or 1 + resamples, points)."""
    from scipy.stats import rankdata

    if x.shape[1] < 3 or np.ptp(x[0]) == 0 or np.ptp(y[0]) == 0:
        return None
    ranks = [rankdata(each, axis=1) for each in (x, y)]
    one, other = (each - each.mean(axis=1, keepdims=True) for each in ranks)
    norms = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        values = (one * other).sum(axis=1) / norms
    # Compare training runs by Fisher's z, which is closer to normal: the correlation itself would
    # give a verdict on the trend of random walks in 10 of 100 cases, Fisher's z does in 6.
    return value_of(values, margin=float(np.arctanh(np.clip(values[0], -0.999, 0.999))))


def compare_kinds(changed: Array, kinds: Array, more: str, less: str) -> Found | None:
    """Return the mean change over blocks of kind `more` minus the mean change over kind `less`."""
    known = np.isfinite(changed[0])
    means = [changed[:, known & (kinds == kind)] for kind in (more, less)]
    if not all(each.shape[1] for each in means):
        return None
    return value_of(means[0].mean(axis=1) - means[1].mean(axis=1))


def changes_more(value: str, what: str, more: str, less: str) -> Statistic:
    """Compare the mean change of a value over blocks of two kinds, without those that subsample."""

    def kinds_compared(points: Points) -> Found | None:
        kept = ~points.frame["subsampling"].to_numpy(bool)[1:]
        kinds = points.frame["kind"].to_numpy()[1:]
        return compare_kinds(np.diff(points[value], axis=1)[:, kept], kinds[kept], more, less)

    rule = (
        f"The value is the mean change of the {what} over {_BLOCKS[more]} minus the mean change "
        f"over {_BLOCKS[less]}; blocks that subsample are left out."
    )
    return Statistic("difference of changes", rule, kinds_compared)


def larger(measure: str, what: str, percent: bool = False) -> Statistic:
    """Subtract the second model's value of a measure from the first model's."""
    return _difference_of_models(measure, what, 1, percent)


def smaller(measure: str, what: str, percent: bool = False) -> Statistic:
    """Subtract the first model's value of a measure from the second model's."""
    return _difference_of_models(measure, what, -1, percent)


def _difference_of_models(measure: str, what: str, sign: int, percent: bool) -> Statistic:
    def models_compared(ours: Points, theirs: Points) -> Found | None:
        return difference(one_value(ours, measure), one_value(theirs, measure), sign)

    one, other = ("first", "second")[::sign]
    rule = f"The value is the {what} of the {one} model minus that of the {other}."
    return Statistic(f"difference of {what}", rule, models_compared, percent=percent)


def one_value(points: Points, measure: str) -> Array | None:
    """Return the value of a measure, as measured and resampled; None if no point has it."""
    values = points.where(points.frame["measure"] == measure)["value"]
    return values[:, 0] if values.shape[1] and np.isfinite(values[0, 0]) else None


def difference(ours: Array | None, theirs: Array | None, sign: int = 1) -> Found | None:
    """Find by how much `ours` exceeds `theirs`, times `sign`; None if either value is missing."""
    if ours is None or theirs is None:
        return None
    ours, theirs = paired(ours, theirs)
    # Values that differ only by rounding count as equal.
    differs = ~np.isclose(ours, theirs, rtol=1e-9, atol=0)
    return value_of(np.where(differs, sign * (ours - theirs), 0.0))


def paired(ours: Array, theirs: Array) -> tuple[Array, Array]:
    """Return two models' values in the same resamples, or only as measured if a model has none."""
    if 1 in (len(ours), len(theirs)):
        return ours[:1], theirs[:1]
    if len(ours) != len(theirs):
        raise ValueError("two models were resampled a different number of times")
    return ours, theirs


def lower_at_cut_points(value: str, what: str, log: bool = False) -> Statistic:
    """Count the cut points at which the first model is lower; both models need equally many."""

    def lower_by(ours: Points, theirs: Points) -> Array | None:
        if len(ours) != len(theirs):
            return None
        first, second = paired(ours[value], theirs[value])
        return log_ratio(second, first) if log else second - first

    rule = f"A cut point is in favour if the {what} of the first model is lower there."
    return share("share of cut points", rule, lower_by)


def excess_of_alike_pairs(pairs: Points, value: str, alike: str) -> Found | None:
    """Find how much larger a value is in `alike` pairs than in others at the same distance."""
    frame, values = pairs.frame, pairs[value]
    are = frame[alike].to_numpy(bool)
    found = []
    for distance in sorted(frame["distance"].unique()):
        here = (frame["distance"] == distance).to_numpy()
        if (here & are).any() and (here & ~are).any():
            found.append(values[:, here & are].mean(axis=1) - values[:, here & ~are].mean(axis=1))
    return value_of(np.mean(found, axis=0)) if found else None
