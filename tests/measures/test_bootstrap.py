"""Bootstrap intervals against scipy's and closed forms."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bootstrap

from vitscope.measures.bootstrap import bootstrap_image_means, spread, spread_of
from vitscope.measures.scores import accuracy_changes

VALUES = np.random.default_rng(3).gamma(2, 1, (200, 3))
RESAMPLES = 20_000
OPTIONS = {"method": "percentile", "n_resamples": RESAMPLES, "rng": 1}
# The ends of an interval from 20,000 resamples are known to about 0.02 standard errors.
TOLERANCE = 0.08


def found(images: int, shares: list[float], seed: int = 4) -> np.ndarray:
    """Draw whether the classes of images are found, each column with its share."""
    return np.random.default_rng(seed).random((images, len(shares))) < shares


def test_means_are_spread_as_theory_says() -> None:
    means = bootstrap_image_means(VALUES, RESAMPLES, 0)
    assert means.shape == (RESAMPLES, 3)
    error = VALUES.std(axis=0) / np.sqrt(200)
    # A deviation of 20,000 values is known to a relative 1 / sqrt(40,000), here 5 times.
    np.testing.assert_allclose(means.std(axis=0), error, rtol=0.025)
    np.testing.assert_array_less(np.abs(means.mean(axis=0) - VALUES.mean(axis=0)), 0.04 * error)


def test_columns_are_resampled_alike() -> None:
    both = bootstrap_image_means(np.column_stack([VALUES[:, 0], 1 - VALUES[:, 0]]), 300, 0)
    np.testing.assert_allclose(both.sum(axis=1), 1, rtol=1e-12)


def test_what_does_not_vary_has_an_interval_of_no_width() -> None:
    low, high, resampled = spread(np.full((50, 1), 7.0), 300, 0)
    np.testing.assert_allclose([low, high], 7, rtol=1e-12)
    np.testing.assert_allclose(resampled, 7, rtol=1e-12)


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    whole = bootstrap_image_means(VALUES, 150, 0)
    monkeypatch.setattr("vitscope.measures.bootstrap.RESAMPLES_AT_ONCE", pieces)
    np.testing.assert_allclose(bootstrap_image_means(VALUES, 150, 0), whole, rtol=1e-13)


def test_the_interval_is_that_of_scipy() -> None:
    ends = spread(VALUES, RESAMPLES, 0)[:2]
    theirs = bootstrap((VALUES,), np.mean, axis=0, **OPTIONS).confidence_interval
    error = VALUES.std(axis=0) / np.sqrt(200)
    assert (np.abs(ends - np.array(theirs)) < TOLERANCE * error).all()


def test_the_interval_of_a_ratio_of_means_is_that_of_scipy() -> None:
    ends = spread_of(lambda means: means[:, 0] / means[:, 1], VALUES, RESAMPLES, 0)[:2]
    theirs = bootstrap(
        (VALUES[:, 0], VALUES[:, 1]),
        lambda a, b, axis: a.mean(axis) / b.mean(axis),
        paired=True,
        **OPTIONS,
    )
    error = theirs.standard_error
    assert (np.abs(ends - np.array(theirs.confidence_interval)) < TOLERANCE * error).all()


def test_a_single_row_has_no_interval() -> None:
    alone = spread(VALUES[:1], 100, 0)
    assert alone.low.shape == alone.high.shape == (3,)
    assert np.isnan([alone.low, alone.high]).all()
    assert alone.columns("v")["v_resampled"] == [None] * 3


SHARES = [0.9, 0.6, 0.2]


def test_a_change_is_spread_as_the_difference_on_the_same_images() -> None:
    clean, disturbed = found(300, [0.85])[:, 0], found(300, SHARES, 5)
    changes = accuracy_changes(clean, disturbed, 500, 0)
    np.testing.assert_allclose(changes["clean_accuracy"], clean.mean(), rtol=1e-12)
    np.testing.assert_allclose(changes["accuracy"], disturbed.mean(axis=0), rtol=1e-12)
    each = 100 * (disturbed - clean[:, None].astype(float))
    np.testing.assert_allclose(changes["change"], each.mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(changes[["ci_low", "ci_high"]].T, spread(each, 500, 0)[:2])


def test_a_single_image_has_a_change_and_no_interval() -> None:
    changes = accuracy_changes(np.array([True]), np.array([[False, True]]), 100, 0)
    assert changes["change"].tolist() == [-100, 0]
    assert changes[["ci_low", "ci_high"]].isna().all(axis=None)


def test_the_seed_alone_decides() -> None:
    clean, disturbed = found(60, [0.85])[:, 0], found(60, SHARES, 5)
    first, again, other = (accuracy_changes(clean, disturbed, 100, seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert (first["ci_low"] != other["ci_low"]).any()


def test_a_table_keeps_the_first_resamples_of_each_column() -> None:
    found = spread(VALUES, 500, 0)
    np.testing.assert_array_equal(found.resampled, bootstrap_image_means(VALUES, 500, 0)[:400])
    columns = found.columns("v")
    assert [*columns] == ["ci_low", "ci_high", "v_resampled"]
    np.testing.assert_allclose(columns["v_resampled"][1], found.resampled[:, 1], rtol=1e-7)
