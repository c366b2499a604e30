"""Verdicts that know chance: against the formula, and by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, spearmanr

from tests.helpers.claims import count_variances, variances
from vitscope.claims.chance import (
    correlation_interval,
    difference_interval,
    share_interval,
    verdict,
)
from vitscope.claims.report import summary


@pytest.mark.parametrize(("count", "total"), [(0, 6), (1, 4), (6, 12), (4, 30), (12, 12)])
def test_intervals_of_shares_are_those_of_wilson(count, total):
    """The two shares from which what was counted is 1.96 standard errors away."""
    low, high = share_interval(count, total)
    deviation = 1.959963984540054
    roots = np.roots(
        [
            total**2 + deviation**2 * total,
            -(2 * total * count + deviation**2 * total),
            count**2,
        ]
    )
    np.testing.assert_allclose(sorted(roots.real), (low, high), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # Newcombe 1998, Table II, method 10, to the four digits that are given there.
        ((56, 70), (48, 80), (0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.1705, 0.8090)),
        ((6, 7), (2, 7), (0.0582, 0.8062)),
        ((5, 56), (0, 29), (-0.0381, 0.1926)),
        ((0, 10), (0, 20), (-0.1611, 0.2775)),
        ((10, 10), (0, 20), (0.6791, 1.0000)),
    ],
)
def test_intervals_of_differences_are_those_of_newcombe(one, other, expected):
    shares = [(count / total, share_interval(count, total)) for count, total in (one, other)]
    assert difference_interval(*shares) == pytest.approx(expected, abs=5.1e-5)


@pytest.mark.parametrize(("truth", "points"), [(0.0, 10), (0.5, 10), (0.8, 25)])
def test_intervals_of_rank_correlations_contain_the_true_one(truth, points):
    """Of normal values, whose Spearman correlation follows from Pearson's: in 95 of 100 draws."""
    pearson = 2 * np.sin(np.pi * truth / 6)
    draws = np.random.default_rng(3).multivariate_normal(
        [0, 0], [[1, pearson], [pearson, 1]], (1500, points)
    )
    found = (correlation_interval(spearmanr(draw).statistic, points) for draw in draws)
    held = np.mean([low < truth < high for low, high in filter(None, found)])
    assert held == pytest.approx(0.95, abs=0.02)


def test_intervals_of_rank_correlations_are_wider_than_fishers_by_the_factor_of_bonett():
    x, y = np.random.default_rng(1).permuted([range(20)] * 2, axis=1)
    fisher = pearsonr(x, y)
    ours = np.arctanh(correlation_interval(fisher.statistic, 20))
    theirs = np.arctanh(list(fisher.confidence_interval()))
    factor = np.sqrt(1 + fisher.statistic**2 / 2)
    assert np.ptp(ours) == pytest.approx(factor * np.ptp(theirs))
    assert ours.mean() == pytest.approx(theirs.mean())


@pytest.mark.parametrize(("correlation", "points"), [(0.8, 4), (0.8, 9), (1.0, 50), (-1.0, 50)])
def test_few_points_and_perfect_order_have_no_interval(correlation, points):
    assert correlation_interval(correlation, points) is None


@pytest.mark.parametrize(
    ("value", "interval", "found"),
    [
        (0.6, None, "yes, without an interval"),
        (0.5, None, "no, without an interval"),
        (0.6, (0.51, 0.7), "yes"),
        (0.6, (0.5, 0.7), "undecided"),
        (0.4, (0.3, 0.5), "undecided"),
        (0.4, (0.3, 0.49), "no"),
    ],
)
def test_what_an_interval_contains_is_undecided(value, interval, found):
    assert verdict(value, 0.5, interval) == found


def test_a_claim_that_several_figures_show_counts_once():
    table = variances("m", ["stem", *["msa"] * 8], [8] * 9, list(range(9)))
    claims = count_variances(table)
    again = pd.concat([claims, claims.assign(figure="other")])
    (section,) = summary(again, {"m": "Mine"})
    assert section.rows == [("Mine", *"01000"), ("all", *"01000")]
    assert summary(claims.iloc[:0], {}) == []
