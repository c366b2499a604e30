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
from vitscope.claims.agreement import score_agreement
from vitscope.claims.claim import Evidence, ScoredCurve
from vitscope.claims.points import PublishedCurve
from vitscope.measures import registry

# A kind of figure, its file of published points, and a curve of the file.
CASES = [
    ("feature_variance", "fig9.csv", "ViT"),
    ("fourier_curves", "fig2a.csv", "ResNet"),
    ("fourier_depth", "fig8.csv", "ViT"),
    ("frequency_noise", "fig2b.csv", "ViT"),
    ("lesion", "fig10b_swin.csv", "Swin"),
]
NO_INTERVAL = {"ci_low": np.nan, "ci_high": np.nan}


def as_measured(kind: str, points: pd.DataFrame) -> pd.DataFrame:
    """Return published points as rows of the table that a measurement of them would write."""
    points = points.assign(model="m", height=8, width=8, measure="diagonal", **NO_INTERVAL)
    if kind == "fourier_depth":
        zero = points.assign(frequency=0.0, delta_log_amplitude=0.0)
        return pd.concat([zero, points.assign(frequency=1.0)])
    if kind == "lesion":
        # A cut point more than units, for the stem.
        return points.assign(index=points["index"] + 1, stage=1)
    return points


def score(kind: str, rows: pd.DataFrame, theirs: dict[str, PublishedCurve]) -> dict:
    (row,) = agreement(kind, rows, theirs).to_dict("records")
    return row


def with_itself(kind: str, file: str, series: str):
    theirs = published(kind, file, {"m": series}, same_models=True)
    return theirs, as_measured(kind, theirs["m"].points)


def test_every_kind_with_a_published_curve_is_here():
    curves = {kind for kind in kinds_with_claims() if evidence(kind).curve}
    scored = {kind for kind in curves if registry.kinds()[kind].published}
    assert {case[0] for case in CASES} == scored


def test_curves_of_the_same_checkpoint_alone_are_scored():
    series = {"m": "ViT", "n": "ResNet"}
    same, other = (
        published("feature_variance", "fig9.csv", series, same_models=same)
        for same in (True, False)
    )
    rows = pd.concat(
        [as_measured("feature_variance", same[m].points).assign(model=m) for m in same]
    )
    scored = agreement("feature_variance", rows, {"m": same["m"], "n": other["n"]})
    assert scored["model"].tolist() == ["m"]
    # Nor is a kind of figure whose claims compare no curve.
    theirs = published("fit", "fig5.csv", {"m": "ViT"}, same_models=True)
    assert agreement("fit", theirs["m"].points, theirs).empty


@pytest.mark.parametrize(("kind", "file", "series"), CASES)
def test_a_curve_agrees_with_itself(kind, file, series):
    theirs, rows = with_itself(kind, file, series)
    found = score(kind, rows.sample(frac=1, random_state=0), theirs)
    assert found["sign_share"] == 1
    assert found["change_correlation"] == pytest.approx(1, abs=1e-12)
    assert found["error"] == pytest.approx(0, abs=1e-12)
    assert (found["model"], found["published_series"]) == ("m", series)
    points = len(theirs["m"].points)
    assert {found[f"{side}_points"] for side in ("published", "measured", "compared")} == {points}


@pytest.mark.parametrize(("kind", "file", "series"), CASES)
@pytest.mark.parametrize("slope", [-3.0, 0.0, 2.0])
def test_a_straight_line_is_no_better_than_the_best_of_them(kind, file, series, slope):
    """What knows nothing of a checkpoint, whatever its slope, does not beat what stands beside."""
    theirs, rows = with_itself(kind, file, series)
    curve = evidence(kind).curve
    x = rows[{"unit": "index"}.get(curve.x, curve.x)]
    line = 10 ** (slope * x) if curve.log else slope * x
    found = score(kind, rows.assign(**{curve.y: line}), theirs)
    assert found["compared_points"] == found["published_points"]
    assert found["sign_share"] <= found["sign_share_of_line"]
    assert found["change_correlation"] is None
    assert found["error"] > found["error_of_line"]


@pytest.mark.parametrize(("kind", "file", "series"), CASES)
def test_a_curve_disagrees_with_its_opposite(kind, file, series):
    theirs, rows = with_itself(kind, file, series)
    curve = evidence(kind).curve
    opposite = 1 / rows[curve.y] if curve.log else -rows[curve.y]
    found = score(kind, rows.assign(**{curve.y: opposite}), theirs)
    points = theirs["m"].points[curve.y]
    assert found["sign_share"] == 0
    assert found["change_correlation"] == pytest.approx(-1, abs=1e-12)
    wanted = np.log10(points) if curve.log else points
    assert found["error"] == pytest.approx(2 * np.sqrt(np.mean(wanted**2)), rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "file", "series"), [case for case in CASES if case[0] != "fourier_curves"]
)
def test_points_that_are_not_measured_do_not_count(kind, file, series):
    theirs, rows = with_itself(kind, file, series)
    column = "frequency" if kind == "frequency_noise" else "index"
    inner = rows[rows[column] < rows[column].max()]
    found = score(kind, inner, theirs)
    assert found["compared_points"] == found["published_points"] - 1
    assert (found["sign_share"], found["error"]) == (1, pytest.approx(0, abs=1e-12))


def test_curves_over_frequency_meet_at_their_own_cut_points():
    theirs, rows = with_itself("fourier_curves", "fig2a.csv", "ResNet")
    swapped = score("fourier_curves", rows.assign(index=16 - rows["index"]), theirs)
    # From end to begin, not even the common fall with frequency is taken for agreement.
    assert swapped["sign_share"] < swapped["sign_share_of_line"]
    absent = score("fourier_curves", rows[rows["index"] != 3], theirs)
    assert absent["compared_points"] == len(rows) - (rows["index"] == 3).sum()
    assert absent["sign_share"] == 1


def test_curves_over_frequency_meet_by_interpolation():
    theirs = published("fourier_curves", "fig2a.csv", {"m": "ViT"}, same_models=True)
    line = theirs["m"].points.assign(delta_log_amplitude=lambda points: -points["frequency"])
    ours = pd.DataFrame(
        [(index, frequency) for index in range(25) for frequency in (0.0, 0.3, 1.0)],
        columns=["index", "frequency"],
    ).assign(model="m", measure="diagonal", delta_log_amplitude=lambda rows: -rows["frequency"])
    found = score("fourier_curves", ours, {"m": PublishedCurve("ViT", line, True)})
    assert found["error"] == pytest.approx(0, abs=1e-6)
    assert (found["published_points"], found["measured_points"]) == (25 * 7, 25 * 3)


def small(curve: ScoredCurve, ours: pd.DataFrame, *theirs: pd.DataFrame) -> dict:
    """Score a small curve against the first of published ones, which are of other networks."""
    series = {
        f"m{number}": PublishedCurve(f"Theirs {number}", points, number == 0)
        for number, points in enumerate(theirs)
    }
    tables = {"t": ours.assign(model="m0"), "blocks": ours.assign(model="m0")}
    found = Evidence("t", (), lambda rows, _: rows, curve=curve)
    (row,) = score_agreement("fig", found, tables, series).to_dict("records")
    return row


def points(*y: float | None, x=None) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(len(y)) if x is None else x, "y": np.array(y, float)})


def test_scores_by_hand():
    # Their changes are 2, -1, 3 and 1; ours 1, 1, 4 and 2, of which three have their sign.
    found = small(ScoredCurve("x", "y"), points(0, 1, 2, 6, 8), points(0, 2, 1, 4, 5))
    assert found["sign_share"] == 3 / 4
    # Ranks 3, 1, 4, 2 against 1.5, 1.5, 4, 3.
    ranks = np.corrcoef([3, 1, 4, 2], [1.5, 1.5, 4, 3])[0, 1]
    assert found["change_correlation"] == pytest.approx(ranks, abs=1e-12)
    assert found["error"] == pytest.approx(np.sqrt((0 + 1 + 1 + 4 + 9) / 5), rel=1e-12)
    # Three of their changes rise; the nearest line is 0 + 1.2 x.
    assert found["sign_share_of_line"] == 3 / 4
    residuals = np.array([0, 2, 1, 4, 5]) - 1.2 * np.arange(5)
    assert residuals.sum() == pytest.approx(0, abs=1e-12)
    assert found["error_of_line"] == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-12)
    assert found["error_of_other"] is None
    assert (found["uncertainty"], found["unit"]) == (None, "y")


def test_the_best_of_other_networks_stands_beside():
    far, flat = points(10, 12, 11, 14, 15), points(2, 2, 2, 2, 2)
    found = small(ScoredCurve("x", "y"), points(0, 1, 2, 6, 8), points(0, 2, 1, 4, 5), far, flat)
    # One has the very shape, far above; the other has no shape, and is nearer.
    assert (found["sign_share_of_other"], found["change_correlation_of_other"]) == (1, 1)
    assert found["error_of_other"] == pytest.approx(np.sqrt((4 + 0 + 1 + 4 + 9) / 5), rel=1e-12)


def test_ratios_are_compared_in_decades():
    ours, theirs = points(1, 10, 0.1), points(10, 100, 1)
    found = small(ScoredCurve("x", "y", log=True), ours, theirs)
    assert found["error"] == pytest.approx(1, abs=1e-12)
    assert (found["sign_share"], found["unit"]) == (1, "decades")


def test_a_change_over_a_longer_way_is_a_slope():
    x = [0.0, 0.1, 0.5, 1.0]
    found = small(ScoredCurve("x", "y"), points(0, 1, 2, 5, x=x), points(0, 2, 3, 4, x=x))
    # Slopes 10, 2.5 and 6 against 20, 2.5 and 2.
    assert found["change_correlation"] == pytest.approx(0.5, abs=1e-12)


def test_curves_of_cut_points_change_from_one_to_the_next():
    theirs = pd.concat([points(0, -1, -2).assign(i=0), points(0, -0.5, -3).assign(i=1)])
    ours = pd.concat([points(0, -1, -2).assign(i=0), points(0, -0.8, -1.5).assign(i=1)])
    found = small(ScoredCurve("x", "y", by="i"), ours, theirs)
    # All fall with x alike: of two changes between them, +0.5 and -1, one has the sign.
    assert found["sign_share"] == found["sign_share_of_line"] == 0.5


def test_the_uncertainty_is_that_over_resamples():
    resampled = np.random.default_rng(0).normal([[1.0], [2.0], [4.0]], 0.1, (3, 400))
    ours = points(1, 2, 4).assign(y_resampled=list(resampled))
    by_hand = np.sqrt(np.mean(np.std(np.log10(resampled), axis=1, ddof=1) ** 2))
    found = small(ScoredCurve("x", "y", log=True), ours, points(1, 2, 4))
    assert found["uncertainty"] == pytest.approx(by_hand, rel=1e-12)


@given(st.permutations(range(9)))
def test_rank_correlation_is_that_of_the_textbook(ranks):
    # Curves whose changes are these numbers, in this order and in theirs.
    ours, theirs = (np.cumsum([0.0, *each]) for each in (ranks, range(9)))
    found = small(ScoredCurve("x", "y"), points(*ours), points(*theirs))
    squares = sum((rank - i) ** 2 for i, rank in enumerate(ranks))
    assert found["change_correlation"] == pytest.approx(1 - 6 * squares / (9 * (81 - 1)))


def test_curves_of_different_length_meet_by_interpolation_in_depth():
    line = np.linspace(0, 1, 7)
    table = variances("m", ["stem"] + ["conv"] * 4, [8] * 5, 10 ** np.linspace(0, 1, 5))
    scores = agreement("feature_variance", table, published_variances(line, 10**line))
    assert scores["error"][0] == pytest.approx(0, abs=1e-6)
    assert scores[["published_points", "measured_points"]].to_numpy().tolist() == [[7, 5]]


def test_only_the_same_model_has_a_score():
    theirs = published_variances([0, 1], [1.0, 2.0], same_model=False)
    table = variances("m", ["stem", "conv"], [8] * 2, [1, 2])
    assert agreement("feature_variance", table, theirs).empty
    claims = count_variances(table, theirs)
    assert claims["published_total"].tolist() == [1]


def test_where_nothing_is_measured_nothing_is_scored():
    found = small(ScoredCurve("x", "y"), points(None, None, None), points(1, 2, 5))
    assert found["compared_points"] == 0
    assert [found[name] for name in ("sign_share", "change_correlation", "error")] == [None] * 3
    flat = small(ScoredCurve("x", "y"), points(3, 3, 3), points(1, 2, 5))
    assert (flat["sign_share"], flat["change_correlation"]) == (0, None)
    assert flat["error"] == pytest.approx(np.sqrt((4 + 1 + 4) / 3), rel=1e-12)
