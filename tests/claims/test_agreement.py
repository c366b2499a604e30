"""Scores of measured curves against published ones, for every kind that has published points."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.claims import (
    agreement,
    count_variances,
    evidence,
    kinds_with_claims,
    published,
    published_variances,
    variances,
)
from vitscope.claims.published import Published
from vitscope.measures import registry

# A kind of figure, its file of published points, and a curve of the file.
CASES = [
    ("feature_variance", "fig9.csv", "ViT"),
    ("fourier_curves", "fig2a.csv", "ResNet"),
    ("fourier_depth", "fig8.csv", "ViT"),
    ("frequency_noise", "fig2b.csv", "ViT"),
    ("lesion", "fig10b_swin.csv", "Swin"),
]
VALUES = ["variance", "delta_log_amplitude", "change"]


def as_measured(kind: str, points: pd.DataFrame) -> pd.DataFrame:
    """Return published points as rows of the table that a measurement of them would write."""
    points = points.assign(model="m", height=8, width=8, measure="diagonal")
    if kind == "fourier_depth":
        zero = points.assign(frequency=0.0, delta_log_amplitude=0.0)
        return pd.concat([zero, points.assign(frequency=1.0)])
    if kind == "lesion":
        # A cut point more than units, for the stem.
        return points.assign(index=points["index"] + 1, stage=1)
    return points


def score(kind: str, rows: pd.DataFrame, theirs: dict[str, Published]) -> dict:
    (row,) = agreement(kind, rows, theirs).to_dict("records")
    return row


def with_itself(kind: str, file: str, series: str):
    """Return published points, and the same as rows of a table."""
    theirs = published(kind, file, {"m": series}, same_models=True)
    return theirs, as_measured(kind, theirs["m"].points)


def test_every_kind_with_a_published_curve_is_here():
    curves = {kind for kind in kinds_with_claims() if evidence(kind).curve}
    scored = {kind for kind in curves if registry.kinds()[kind].published}
    assert {case[0] for case in CASES} == scored


def test_what_has_no_curve_is_not_scored():
    theirs = published("fit", "fig5.csv", {"m": "ViT"}, same_models=True)
    assert agreement("fit", theirs["m"].points, theirs).empty


@pytest.mark.parametrize(("kind", "file", "series"), CASES)
def test_a_curve_agrees_with_itself(kind, file, series):
    theirs, rows = with_itself(kind, file, series)
    found = score(kind, rows.sample(frac=1, random_state=0), theirs)
    assert found["rank_correlation"] == pytest.approx(1)
    assert found["normalized_rmse"] == pytest.approx(0, abs=1e-12)
    assert (found["model"], found["published_series"]) == ("m", series)
    assert found["published_points"] == found["measured_points"] == len(theirs["m"].points)


@pytest.mark.parametrize(("kind", "file", "series"), CASES)
def test_a_curve_disagrees_with_its_opposite(kind, file, series):
    theirs, rows = with_itself(kind, file, series)
    (value,) = set(VALUES) & set(theirs["m"].points)
    points = theirs["m"].points[value]
    found = score(kind, rows.assign(**{value: -rows[value]}), theirs)
    assert found["rank_correlation"] == pytest.approx(-1)
    by_hand = np.sqrt(np.mean((2 * points) ** 2)) / (points.max() - points.min())
    assert found["normalized_rmse"] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("kind", "file", "series"), [case for case in CASES if case[0] != "fourier_curves"]
)
def test_points_that_are_not_measured_leave_no_score(kind, file, series):
    theirs, rows = with_itself(kind, file, series)
    column = "frequency" if kind == "frequency_noise" else "index"
    inner = rows[rows[column] < rows[column].max()]
    if kind in ("feature_variance", "fourier_depth"):
        # Depth ends at 1 in every model; a curve that does not is damaged.
        assert inner["depth"].max() < 1
    found = score(kind, inner, theirs)
    assert found["rank_correlation"] is None
    assert found["normalized_rmse"] is None


def test_curves_over_frequency_meet_at_their_own_cut_points():
    theirs, rows = with_itself("fourier_curves", "fig2a.csv", "ResNet")
    swapped = rows.assign(index=16 - rows["index"])
    assert score("fourier_curves", swapped, theirs)["normalized_rmse"] > 0.1
    absent = rows[rows["index"] != 3]
    assert score("fourier_curves", absent, theirs)["rank_correlation"] is None


def test_curves_over_frequency_meet_by_interpolation():
    theirs = published("fourier_curves", "fig2a.csv", {"m": "ViT"}, same_models=True)
    line = theirs["m"].points.assign(delta_log_amplitude=lambda points: -points["frequency"])
    ours = pd.DataFrame(
        [(index, frequency) for index in range(25) for frequency in (0.0, 0.3, 1.0)],
        columns=["index", "frequency"],
    ).assign(model="m", measure="diagonal", delta_log_amplitude=lambda rows: -rows["frequency"])
    found = score("fourier_curves", ours, {"m": Published("ViT", line, True)})
    assert found["normalized_rmse"] == pytest.approx(0, abs=1e-6)
    assert (found["published_points"], found["measured_points"]) == (25 * 7, 25 * 3)


@given(st.permutations(range(9)))
def test_rank_correlation_is_that_of_the_textbook(ranks):
    depth = np.linspace(0, 1, 9)
    table = variances("m", ["stem"] + ["conv"] * 8, [8] * 9, np.exp(ranks))
    scores = agreement("feature_variance", table, published_variances(depth, np.arange(9.0)))
    squares = sum((rank - i) ** 2 for i, rank in enumerate(ranks))
    assert scores["rank_correlation"][0] == pytest.approx(1 - 6 * squares / (9 * (81 - 1)))


def test_curves_of_different_length_meet_by_interpolation_in_depth():
    line = np.linspace(0, 1, 7)
    table = variances("m", ["stem"] + ["conv"] * 4, [8] * 5, 2 + 3 * np.arange(5) / 4)
    scores = agreement("feature_variance", table, published_variances(line, 2 + 3 * line))
    assert scores["normalized_rmse"][0] == pytest.approx(0, abs=1e-6)
    assert scores[["published_points", "measured_points"]].to_numpy().tolist() == [[7, 5]]


def test_only_the_same_model_has_a_score():
    theirs = published_variances([0, 1], [1.0, 2.0], same_model=False)
    table = variances("m", ["stem", "conv"], [8] * 2, [1, 2])
    assert agreement("feature_variance", table, theirs).empty
    claims = count_variances(table, theirs)
    assert claims["published_total"].tolist() == [1]


@pytest.mark.parametrize(
    ("ours", "error"), [([3, 3, 3], pytest.approx(np.sqrt(3) / 4)), ([1, 2, np.nan], None)]
)
def test_a_curve_without_ranks_has_no_correlation(ours, error):
    theirs = published_variances([0, 0.5, 1], [1.0, 2.0, 5.0])
    table = variances("m", ["stem", "conv", "conv"], [8] * 3, ours)
    scores = agreement("feature_variance", table, theirs)
    assert scores["rank_correlation"].isna().all()
    (found,) = scores["normalized_rmse"]
    assert found == error if error is not None else pd.isna(found)
