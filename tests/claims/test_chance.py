import numpy as np
import pytest

from vitscope.claims.chance import false_discovery_rates, resampled_chance


def test_the_chance_of_the_other_side_is_counted_in_resamples():
    # Two of 99 are at the bound or below it: twice (1 + 2) of 100.
    resampled = np.array([*[-0.1, 0.0], *[0.2] * 97])
    assert resampled_chance(resampled, 0.0) == pytest.approx(0.06, rel=1e-12)
    # None is, and that is no certainty.
    assert resampled_chance(np.full(399, 0.2), 0.0) == pytest.approx(2 / 400, rel=1e-12)
    assert resampled_chance(np.full(399, 0.0), 0.0) == 1
    assert resampled_chance(-resampled, 0.0) == resampled_chance(resampled, 0.0)


def test_rates_of_false_verdicts_are_by_hand():
    """Each chance times how many tests there are, over its rank, and no more than one after it."""
    chances = np.array([0.01, np.nan, 0.04, 0.03, 0.5])
    # Ranked: 0.01 x 4 / 1, 0.03 x 4 / 2 = 0.06, 0.04 x 4 / 3 = 0.0533, 0.5 x 4 / 4.
    found = false_discovery_rates(chances)
    np.testing.assert_allclose(found, [0.04, np.nan, 0.16 / 3, 0.16 / 3, 0.5], rtol=1e-12)
    assert np.isnan(false_discovery_rates(np.array([np.nan, np.nan]))).all()
