"""Intervals over images and batches, and what they decide: against scipy, and by hand.

Intervals of a network contain what all images would give in 95 of 100 draws of images.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binomtest, spearmanr, ttest_1samp

from vitscope.claims.chance import mean_chance, median_chance
from vitscope.claims.intervals import (
    FEWEST_OF_MEDIAN,
    batch_share_interval,
    decide_by_interval,
    mean_interval,
    median_interval,
    resampled_interval,
    share_interval,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import changes_more, falls, grows_with_depth
from vitscope.measures.bootstrap import spread


@pytest.mark.parametrize(("count", "total"), [(0, 6), (1, 4), (6, 12), (4, 30), (12, 12)])
def test_intervals_of_shares_are_those_of_wilson(count, total):
    """The two shares from which what was counted is 1.96 standard errors away."""
    low, high = share_interval(count, total)
    deviation = 1.959963984540054
    roots = np.roots(
        [total**2 + deviation**2 * total, -(2 * total * count + deviation**2 * total), count**2]
    )
    np.testing.assert_allclose(sorted(roots.real), (low, high), rtol=1e-9, atol=1e-12)


def test_a_value_that_some_resample_does_not_have_has_no_interval():
    assert resampled_interval(np.array([1.0, np.nan, 2.0])) is None
    assert resampled_interval(np.arange(41.0)) == (1, 39)


@pytest.mark.parametrize("values", [[0.2, 0.3, 0.25], [1.0, 2.0, 4.0, 8.0], list(range(20))])
@pytest.mark.parametrize("above", [0.0, 0.5])
def test_means_have_the_interval_and_the_chance_of_students_test(values, above):
    found = ttest_1samp(values, above)
    interval = mean_interval(np.array(values))
    np.testing.assert_allclose(interval, found.confidence_interval(0.95), rtol=1e-12)
    assert mean_chance(np.array(values), above) == pytest.approx(found.pvalue, rel=1e-12)
    # A test decides at 5 % where the interval does not contain the bound.
    assert (decide_by_interval(np.mean(values), above, interval) == "open") == (found.pvalue > 0.05)


@pytest.mark.parametrize("values", [[], [0.3], [0.3, 0.3, 0.3], [0.3, np.nan, 0.4]])
def test_what_does_not_differ_has_no_interval_of_its_mean(values):
    assert mean_interval(np.array(values)) is None


@pytest.mark.parametrize(
    ("value", "interval", "found"),
    [
        (0.6, None, "open"),
        (0.6, (0.51, 0.7), "yes"),
        (0.6, (0.5, 0.7), "open"),
        (0.4, (0.3, 0.5), "open"),
        (0.4, (0.3, 0.49), "no"),
    ],
)
def test_what_an_interval_contains_is_open(value, interval, found):
    assert decide_by_interval(value, 0.5, interval) == found


IMAGES, BLOCKS, DRAWS = 256, 24, 500
# Spread of true changes over blocks, in standard errors of a mean over the images: with it 14 of
# 15 have a certain sign, as measured (204 of 219).
EFFECT = 23.0


def draw(generator: np.random.Generator, effect: float) -> tuple[Points, np.ndarray]:
    """Return the points of a network whose blocks change a value, and the true changes."""
    true = effect / np.sqrt(IMAGES) * generator.standard_normal(BLOCKS)
    steps = true + generator.standard_normal((IMAGES, BLOCKS))
    values = np.cumsum(np.column_stack([generator.standard_normal(IMAGES), steps]), axis=1)
    kinds, depth = ["stem", *["msa", "mlp"] * (BLOCKS // 2)], np.linspace(0, 1, BLOCKS + 1)
    columns = {"v": values.mean(axis=0)} | spread(values, 400, seed=0).columns("v")
    frame = pd.DataFrame({"kind": kinds, "depth": depth, "subsampling": False, **columns})
    return Points(frame), true


def truths(true: np.ndarray) -> dict[str, float]:
    msas, mlps = true[0::2], true[1::2]
    return {
        "share": (msas < 0).mean(),
        "trend": spearmanr(range(BLOCKS + 1), np.cumsum([0, *true])).statistic,
        "difference": msas.mean() - mlps.mean(),
    }


def test_shares_trends_and_differences_are_covered():
    statistics = {
        "share": falls("msa", "v", "value"),
        "trend": grows_with_depth("v", "value"),
        "difference": changes_more("v", "value", "msa", "mlp"),
    }
    generator = np.random.default_rng(0)
    held = dict.fromkeys(statistics, 0)
    for _ in range(DRAWS):
        points, true = draw(generator, EFFECT)
        for name, truth in truths(true).items():
            low, high = statistics[name].find(points).interval
            held[name] += low - 1e-9 <= truth <= high + 1e-9
    assert 0.93 <= held["trend"] / DRAWS <= 0.97
    assert 0.93 <= held["difference"] / DRAWS <= 0.97
    # A share of 12 has few values: its interval is one of them where all signs are certain.
    assert held["share"] / DRAWS >= 0.95


@pytest.mark.parametrize("batches", [20, 40])
def test_means_over_batches_are_covered(batches):
    """Values of batches are skewed, as eigenvalues are."""
    values = np.random.default_rng(1).gamma(4, size=(4000, batches))
    ends = [mean_interval(each) for each in values]
    held = np.mean([low <= 4 <= high for low, high in ends])
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize("count", [*range(13), 20, 25, 101])
def test_medians_have_the_interval_that_the_sign_test_leaves(count):
    values = np.random.default_rng(count).normal(size=count)
    found, ordered = median_interval(values), np.sort(values)
    assert (found is None) == (count < FEWEST_OF_MEDIAN)
    if found:
        # Between two values the test is the same for all medians.
        between = (ordered[1:] + ordered[:-1]) / 2
        kept = [each for each in between if median_chance(values, each) > 0.05]
        assert ordered[ordered <= found[0]][-1] < kept[0] < np.min(ordered[ordered > found[0]])
        assert np.max(ordered[ordered < found[1]]) < kept[-1] < found[1]
        assert median_chance(values, kept[0]) == binomtest(sum(values > kept[0]), count).pvalue


def test_shares_of_batches_have_the_interval_of_clopper_and_pearson():
    for count, total in ((0, 6), (3, 6), (6, 6), (7, 20)):
        ends = beta.ppf(0.025, count, total - count + 1), beta.ppf(0.975, count + 1, total - count)
        expected = (0 if count == 0 else ends[0], 1 if count == total else ends[1])
        assert batch_share_interval(count, total) == pytest.approx(expected)


DRAWN = {
    "normal": (lambda chance, shape: chance.normal(size=shape), 0.0),
    "lognormal": (lambda chance, shape: chance.lognormal(0, 1.5, shape), 1.0),
    "heavy tails": (lambda chance, shape: chance.standard_t(1.5, shape), 0.0),
    # The difference of two shares of five that are seldom negative: most are ties.
    "ties": (
        lambda chance, shape: (chance.binomial(5, 0.1, shape) - chance.binomial(5, 0.1, shape)) / 5,
        0.0,
    ),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("count", [6, 9, 20])
def test_intervals_of_medians_cover_them_whatever_batches_are_like(name, count):
    """A share of 2,000 draws is off by one percentage point at most, in two standard errors."""
    draw, median = DRAWN[name]
    drawn = draw(np.random.default_rng(7), (2000, count))
    intervals = np.array([median_interval(values) for values in drawn])
    missed = np.mean((intervals[:, 0] > median) | (intervals[:, 1] < median))
    assert missed <= 0.05 + 0.01
