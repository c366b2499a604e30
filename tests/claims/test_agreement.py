"""Scores of measured curves against published ones, for every kind that has published points."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import EVIDENCE
from vitscope.claims.counting import score_agreement
from vitscope.claims.published import Published, read_published
from vitscope.measures.rooms import kinds
from vitscope.settings.loading import PUBLISHED

# A kind of figure, its file of published points, and the table that they are points of.
CASES = [
    ("feature_variance", "fig9.csv", "ViT", "feature_variance"),
    ("fourier_curves", "fig2a.csv", "ResNet", "fourier"),
    ("fourier_depth", "fig8.csv", "ViT", "fourier"),
    ("frequency_noise", "fig2b.csv", "ViT", "frequency_noise"),
    ("lesion", "fig10b_swin.csv", "Swin", "lesion"),
]
VALUES = ["variance", "delta_log_amplitude", "change"]


def published(kind: str, file: str, series: str) -> dict[str, Published]:
    return read_published(
        PUBLISHED / file, kinds()[kind].published, {"m": series}, same_models=True
    )


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


def score(kind: str, table: str, rows: pd.DataFrame, theirs: dict[str, Published]) -> dict:
    tables = {table: rows, "blocks": rows}
    (row,) = score_agreement("fig", EVIDENCE[kind], tables, theirs).to_dict("records")
    return row


def test_every_kind_with_a_published_curve_is_here():
    scored = {kind for kind, found in EVIDENCE.items() if found.curve and kinds()[kind].published}
    assert {case[0] for case in CASES} == scored


def test_what_has_no_curve_is_not_scored():
    theirs = published("fit", "fig5.csv", "ViT")
    assert score_agreement("fig", EVIDENCE["fit"], {"fit": theirs["m"].points}, theirs).empty


@pytest.mark.parametrize(("kind", "file", "series", "table"), CASES)
def test_a_curve_agrees_with_itself(kind, file, series, table):
    theirs = published(kind, file, series)
    rows = as_measured(kind, theirs["m"].points)
    found = score(kind, table, rows.sample(frac=1, random_state=0), theirs)
    assert found["rank_correlation"] == pytest.approx(1)
    assert found["normalized_rmse"] == pytest.approx(0, abs=1e-12)
    assert (found["model"], found["published_series"]) == ("m", series)
    assert found["published_points"] == found["measured_points"] == len(theirs["m"].points)


@pytest.mark.parametrize(("kind", "file", "series", "table"), CASES)
def test_a_curve_disagrees_with_its_opposite(kind, file, series, table):
    theirs = published(kind, file, series)
    rows = as_measured(kind, theirs["m"].points)
    (value,) = set(VALUES) & set(theirs["m"].points)
    points = theirs["m"].points[value]
    found = score(kind, table, rows.assign(**{value: -rows[value]}), theirs)
    assert found["rank_correlation"] == pytest.approx(-1)
    by_hand = np.sqrt(np.mean((2 * points) ** 2)) / (points.max() - points.min())
    assert found["normalized_rmse"] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("kind", "file", "series", "table"), [case for case in CASES if case[0] != "fourier_curves"]
)
def test_places_that_are_not_measured_leave_no_score(kind, file, series, table):
    theirs = published(kind, file, series)
    rows = as_measured(kind, theirs["m"].points)
    place = "frequency" if kind == "frequency_noise" else "index"
    inner = rows[rows[place] < rows[place].max()]
    if kind in ("feature_variance", "fourier_depth"):
        # Depth ends at 1 in every model; a curve that does not is damaged.
        assert inner["depth"].max() < 1
    found = score(kind, table, inner, theirs)
    assert found["rank_correlation"] is None
    assert found["normalized_rmse"] is None


def test_curves_over_frequency_meet_at_their_own_cut_points():
    theirs = published("fourier_curves", "fig2a.csv", "ResNet")
    rows = as_measured("fourier_curves", theirs["m"].points)
    swapped = rows.assign(index=16 - rows["index"])
    assert score("fourier_curves", "fourier", swapped, theirs)["normalized_rmse"] > 0.1
    absent = rows[rows["index"] != 3]
    assert score("fourier_curves", "fourier", absent, theirs)["rank_correlation"] is None


def test_curves_over_frequency_meet_by_interpolation():
    theirs = published("fourier_curves", "fig2a.csv", "ViT")
    line = theirs["m"].points.assign(delta_log_amplitude=lambda points: -points["frequency"])
    ours = pd.DataFrame(
        [(index, frequency) for index in range(25) for frequency in (0.0, 0.3, 1.0)],
        columns=["index", "frequency"],
    ).assign(model="m", measure="diagonal", delta_log_amplitude=lambda rows: -rows["frequency"])
    found = score("fourier_curves", "fourier", ours, {"m": Published("ViT", line, True)})
    assert found["normalized_rmse"] == pytest.approx(0, abs=1e-6)
    assert (found["published_points"], found["measured_points"]) == (25 * 7, 25 * 3)


def test_kinds_without_published_points_have_no_score():
    theirs = {"m": Published("Theirs", pd.DataFrame({"index": [0]}), True)}
    assert score_agreement("fig", EVIDENCE["cka"], {}, theirs).empty
