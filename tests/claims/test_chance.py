"""Verdicts that know chance: against the formula, and by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import count_variances, variances
from vitscope.claims.chance import difference_interval, share_interval, verdict
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


@pytest.mark.parametrize(
    ("value", "interval", "found"),
    [
        (0.6, None, "yes"),
        (0.5, None, "no"),
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
    assert section.rows == [("Mine", *"010000"), ("all", *"010000")]
    assert summary(claims.iloc[:0], {}) == []
