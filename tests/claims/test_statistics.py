"""What is counted for claims, in each resample: against pandas and scipy, one by one."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from vitscope.claims.points import Points
from vitscope.claims.statistics import (
    Found,
    certain_signs,
    changes_more,
    difference,
    excess_of_alike_pairs,
    falls,
    falls_more,
    grows_with_depth,
    larger,
    lower_at_cut_points,
    rises,
    share_of,
    smaller,
)

KINDS = ["stem", "msa", "mlp", "msa", "mlp", "conv", "mlp"]


def frame(seed: int = 0, resamples: int = 40) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    values = np.cumsum(generator.standard_normal(len(KINDS)))
    lists = values + 0.5 * generator.standard_normal((resamples, len(KINDS)))
    points = pd.DataFrame({"index": range(len(KINDS)), "kind": KINDS, "v": values})
    points = points.assign(v_resampled=[*lists.T.astype(np.float32)])
    return points.assign(depth=np.linspace(0, 1, len(KINDS)), subsampling=points["index"] == 4)


def each_resample(points: pd.DataFrame) -> list[pd.DataFrame]:
    lists = np.stack(points["v_resampled"])
    plain = points.drop(columns="v_resampled")
    return [plain, *(plain.assign(v=lists[:, row].astype(float)) for row in range(lists.shape[1]))]


def by_kind(points: pd.DataFrame, kind: str | None) -> pd.Series:
    chosen = points["subsampling"]
    if kind:
        chosen = (points["kind"] == kind) & ~points["subsampling"]
    return points["v"].diff()[chosen].dropna()


def by_pandas(points: pd.DataFrame) -> dict[str, float]:
    changes = {kind: by_kind(points, kind) for kind in ("msa", "mlp", None)}
    return {
        "falls": (changes["msa"] < 0).mean(),
        "rises": (changes["mlp"] > 0).mean(),
        "subsampling": (changes[None] < 0).mean(),
        "grows": spearmanr(points["depth"], points["v"]).statistic,
        "shrinks": -spearmanr(points["depth"], points["v"]).statistic,
        "more": changes["msa"].mean() - changes["mlp"].mean(),
    }


STATISTICS = {
    "falls": falls("msa", "v", "value"),
    "rises": rises("mlp", "v", "value"),
    "subsampling": falls(None, "v", "value"),
    "grows": grows_with_depth("v", "value"),
    "shrinks": grows_with_depth("v", "value", -1),
    "more": changes_more("v", "value", "msa", "mlp"),
}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("seed", range(3))
def test_values_in_resamples_are_those_of_each_alone(name, seed):
    points = frame(seed)
    found = STATISTICS[name].find(Points(points))
    expected = [by_pandas(each)[name] for each in each_resample(points)]
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    low, high = np.percentile(expected[1:], (2.5, 97.5))
    assert found.interval == pytest.approx((low, high), rel=1e-12)
    at_or_below, at_or_above = (np.array(expected[1:]) <= 0.2), (np.array(expected[1:]) >= 0.2)
    chance = 2 * (1 + min(at_or_below.sum(), at_or_above.sum())) / 41
    assert found.p_value_against(0.2) == pytest.approx(min(1, chance))


def test_signs_are_certain_where_the_interval_of_a_change_is_on_one_side():
    points = frame()
    found = STATISTICS["falls"].find(Points(points))
    changed = [by_kind(each, "msa") for each in each_resample(points)]
    ends = np.percentile(changed[1:], (2.5, 97.5), axis=0)
    certain = (ends[0] > 0) | (ends[1] < 0)
    assert found.certain == certain.sum()
    assert (found.count, found.total) == ((changed[0] < 0).sum(), len(changed[0]))
    assert found.margin == pytest.approx(-changed[0].mean())


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Found(np.array([0.6])), "yes, without an interval"),
        (Found(np.array([0.5])), "no, without an interval"),
        (Found(np.array([0.6]), exact=True), "yes"),
        (Found(np.array([0.4]), exact=True), "no"),
        (Found(np.array([0.6, *np.linspace(0.55, 0.65, 41)])), "yes"),
        (Found(np.array([0.6, *np.linspace(0.45, 0.75, 41)])), "open"),
        # So few batches have no interval, however alike they are.
        (Found(np.array([0.6]), batches=np.linspace(0.59, 0.61, 19)), "open"),
        (Found(np.array([0.6]), batches=np.linspace(0.59, 0.61, 20)), "yes"),
        (Found(np.array([0.6]), medians=np.linspace(0.59, 0.61, 5)), "open"),
        (Found(np.array([0.6]), medians=np.linspace(0.59, 0.61, 6)), "yes"),
        (Found(np.array([0.5]), medians=np.full(6, 0.5)), "open"),
        (Found(np.array([0.5]), medians=np.r_[np.full(5, 0.5), 0.6]), "open"),
        (Found(np.array([1.0]), 6, 6, medians=np.ones(6)), "yes"),
        (Found(np.array([0.9]), 9, 10, medians=np.r_[np.ones(9), 0]), "yes"),
        (Found(np.array([0.8]), 8, 10, medians=np.r_[np.ones(8), 0, 0]), "open"),
    ],
)
def test_what_is_found_is_judged_by_its_unit(found, verdict):
    assert found.verdict(0.5) == verdict


def test_a_case_that_nobody_knows_does_not_count():
    found = share_of(np.array([[1.0, np.nan, -1.0], [1.0, np.nan, 1.0], [2.0, np.nan, 1.0]]))
    assert (found.count, found.total, found.certain) == (1, 2, 2)
    assert found.values.tolist() == [0.5, 1, 1]
    assert certain_signs(np.array([[1.0], [0.1], [-0.1]])).tolist() == [False]
    assert share_of(np.full((3, 1), np.nan)) is None


def test_half_in_favour_is_not_more_than_half_whatever_images_are_taken():
    half = share_of(np.tile([1.0, -1.0], (5, 1)))
    assert (half.certain, half.interval, half.verdict(0.5)) == (2, (0.5, 0.5), "no")
    assert half.p_value_against(0.5) == 2 / 5
    moved = share_of(np.array([[1.0, -1.0], [1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]))
    assert (moved.certain, moved.verdict(0.5)) == (1, "open")


def test_no_change_is_in_favour_of_nothing_in_any_resample():
    found = share_of(np.zeros((5, 4)))
    assert found.values.tolist() == [0] * 5
    assert found.certain == 0


@pytest.mark.parametrize(("statistic", "sign"), [(larger, 1), (smaller, -1)])
def test_differences_are_paired(statistic, sign):
    """Two models that find the same images hard differ by less than either is uncertain."""
    generator = np.random.default_rng(1)
    common = generator.standard_normal(400)
    models = [
        pd.DataFrame(
            {"measure": ["e"], "value": [value], "value_resampled": [value + common + noise]}
        )
        for value, noise in ((3.0, 0.0), (2.5, 0.01 * generator.standard_normal(400)))
    ]
    found = statistic("e", "error").find(*map(Points, models))
    assert found.value == pytest.approx(sign * 0.5)
    assert found.interval == pytest.approx((sign * 0.5, sign * 0.5), abs=0.03)
    assert found.verdict(0) == ("yes" if sign > 0 else "no")


def test_a_difference_with_one_that_was_not_resampled_has_no_interval():
    found = difference(np.array([3.0]), np.array([2.0, 2.1, 1.9]))
    assert (found.value, found.interval) == (1, None)
    assert found.verdict(0) == "yes, without an interval"
    with pytest.raises(ValueError, match="different number of times"):
        difference(np.ones(3), np.ones(4))


def test_numbers_that_differ_by_rounding_are_equal():
    assert difference(np.array([0.1 + 0.2]), np.array([0.3])).value == 0
    assert difference(None, np.ones(3)) is None


def test_cut_points_of_two_models_are_compared_one_by_one():
    ours, theirs = frame(0), frame(1)
    found = lower_at_cut_points("v", "value").find(Points(ours), Points(theirs))
    pairs = zip(each_resample(ours), each_resample(theirs), strict=True)
    expected = [(one["v"] < other["v"]).mean() for one, other in pairs]
    np.testing.assert_allclose(found.values, expected)
    fewer = Points(theirs[:-1])
    assert lower_at_cut_points("v", "value").find(Points(ours), fewer) is None


def test_blocks_are_compared_with_those_in_their_place():
    """Ours falls by a fifth over the first MSA and theirs by a tenth, then ours falls less."""
    ours, theirs = (frame().drop(columns="v_resampled") for _ in range(2))
    ours["v"], theirs["v"] = [1, 0.8, 2, 1.95, 1.9, 1, 1], [10, 9, 9, 8.5, 20, 20, 20]
    found = falls_more("msa", "v", "value", log=True).find(*map(Points, (ours, theirs)))
    assert (found.count, found.total) == (1, 2)
    # As differences, both of theirs fall more.
    found = falls_more("msa", "v", "value").find(*map(Points, (ours, theirs)))
    assert (found.count, found.total) == (0, 2)
    # What the second model has in their place may be of any kind.
    other = Points(theirs.assign(kind=["stem", *["mlp"] * 6]))
    assert falls_more("msa", "v", "value", log=True).find(Points(ours), other).count == 1
    assert falls_more("msa", "v", "value").find(Points(ours), Points(theirs[:-1])) is None


def test_pairs_compare_with_others_at_the_same_distance():
    points = frame().assign(distance=[1, 1, 1, 2, 2, 2, 3], alike=[1, 0, 0, 1, 1, 0, 1])
    found = excess_of_alike_pairs(Points(points), "v", "alike")
    for value, each in zip(found.values, each_resample(points), strict=True):
        means = each.groupby(["distance", "alike"])["v"].mean().unstack()
        assert value == pytest.approx((means[1] - means[0]).dropna().mean())


def test_points_keep_what_is_chosen():
    points = Points(frame()).where(np.array(KINDS) == "msa")
    assert points["v"].shape == (41, 2)
    assert points["depth"].shape == (1, 2)
    lists = frame().assign(v=[np.nan, *frame()["v"][1:]]).astype({"v_resampled": object})
    lists.at[0, "v_resampled"] = None
    known = Points(lists).known("v")
    assert np.isfinite(known["v"]).all()
    assert len(known) == len(KINDS) - 1
