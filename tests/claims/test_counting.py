from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, ttest_1samp

from tests.helpers.claims import count_variances, published_variances, variances, with_resamples
from vitscope.claims.counting import Training, count_by_recipe, trainings
from vitscope.networks.finding.cut_points import CUT_POINT


def eight_msas(falling: int, deviation: float | list[float] | None) -> pd.DataFrame:
    """Return the claims of a model of eight MSAs, of which some lower the variance by 1."""
    variance = [value for i in range(8) for value in (9, 8 if i < falling else 10)]
    table = variances("m", ["stem", "msa"] * 8, [8] * 16, variance)
    if deviation is not None:
        table = with_resamples(table, "variance", deviation)
    return count_variances(table)


@pytest.mark.parametrize("falling", range(9))
def test_a_claim_holds_in_more_than_half_of_the_blocks(falling):
    (row,) = eight_msas(falling, None).to_dict("records")
    assert row["measured_value"] == falling / 8
    assert row["holds"] == f"{'yes' if falling > 4 else 'no'}, without an interval"
    assert (row["certain"], row["p"]) == (None, pytest.approx(np.nan, nan_ok=True))


@pytest.mark.parametrize(("falling", "holds"), [(0, "no"), (3, "no"), (5, "yes"), (8, "yes")])
def test_blocks_of_certain_signs_decide_of_the_network(falling, holds):
    """All blocks there are, were they two or twelve: nothing is open but what images leave open."""
    (row,) = eight_msas(falling, 0.01).to_dict("records")
    assert (row["measured_count"], row["measured_total"], row["certain"]) == (falling, 8, 8)
    assert row["measured_low"] == row["measured_high"] == falling / 8
    assert row["holds"] == f"{holds}, in this network"
    # Not one of 400 resamples is on the other side.
    assert row["p"] == 2 / 401
    # The mean logarithm of a ratio: from 9 down to 8, or up to 10.
    margin = (falling * np.log(9 / 8) - (8 - falling) * np.log(10 / 9)) / 8
    assert row["margin"] == pytest.approx(margin)


def test_blocks_of_open_signs_leave_a_claim_open():
    # Two of the five MSAs that lower the variance do so by less than images leave open.
    deviation = [5.0] * 4 + [0.01] * 12
    (row,) = eight_msas(5, deviation).to_dict("records")
    assert (row["measured_count"], row["certain"]) == (5, 6)
    assert (row["measured_low"], row["measured_high"]) == (3 / 8, 5 / 8)
    assert (row["measured_verdict"], row["holds"]) == ("open", "open")


def test_what_is_read_off_a_curve_is_shown_and_not_judged():
    theirs = published_variances([0, 0.5, 1], [1.0, 2.0, 3.0])
    claims = count_variances(variances("m", ["stem", "conv", "conv"], [8] * 3, [1, 2, 3]), theirs)
    (row,) = claims[claims["claim"] == "conv_increases_variance"].to_dict("records")
    assert (row["published_count"], row["published_total"], row["published_value"]) == (2, 2, 1)
    assert row["published_verdict"] is None


def test_a_claim_says_on_which_side_of_norms_a_model_is_read():
    points = variances("m", ["stem", "msa", "msa"], [8] * 3, [3, 2, 1])
    points = points.reindex(columns=[*points, *CUT_POINT.keys() - {*points}])
    plain = count_variances(points)
    said = count_variances(points.assign(norm=[None, "before", "before"]))
    assert said["statement"].tolist() == [
        f"{statement} (m is read before its norms)" for statement in plain["statement"]
    ]
    assert said.drop(columns="statement").equals(plain.drop(columns="statement"))


# Spread of a change over trainings, in standard errors of its mean over 256 images: the median of
# the changes over the blocks of three trainings of a small ViT.
SEEDS_OVER_IMAGES = 8.5


def rows(
    models: list[str], values: list[float], margins: list[float] | None = None, **more
) -> pd.DataFrame:
    named = {"figure": "fig9", "model": models, "versus": None, "snapshot": None, "claim": "c"}
    found = {"measured_value": values, "measured_count": None, "measured_verdict": "yes"}
    chance = {"margin": margins or np.nan, "holds_above": 0.0, "p": 0.01}
    found |= {"measured_total": None, "batches": np.nan, "fewest_batches": np.nan}
    return pd.DataFrame({**named, **found, **chance, **more})


OF = trainings([["a", "b", "c"]], {"a": 0, "b": 1, "c": 2})


def test_three_trainings_decide_by_students_interval():
    values = [0.2, 0.3, 0.25]
    found = count_by_recipe(rows(["a", "b", "c"], values), OF)
    interval = ttest_1samp(values, 0).confidence_interval(0.95)
    assert found["trainings"].tolist() == [3, 3, 3]
    assert found["recipe_low"].tolist() == pytest.approx([interval.low] * 3)
    assert found["recipe_high"].tolist() == pytest.approx([interval.high] * 3)
    assert found["recipe_verdict"].tolist() == ["yes"] * 3
    assert found["holds"].tolist() == ["yes"] * 3
    assert found["values"].tolist() == [values] * 3


def test_shares_go_by_their_margins_and_show_their_counts():
    share = rows(
        ["a", "b", "c"], [1.0, 11 / 12, 1.0], [0.2, -0.1, 0.3], holds_above=0.5,
        measured_count=[12, 11, 12],
    )  # fmt: skip
    found = count_by_recipe(share, OF)
    interval = ttest_1samp([0.2, -0.1, 0.3], 0).confidence_interval(0.95)
    assert found["recipe_low"].iloc[0] == pytest.approx(interval.low)
    assert found["values"].iloc[0] == [12, 11, 12]
    assert set(found["holds"]) == {"open"}


@pytest.mark.parametrize("models", [["a", "b"], ["a", "b", "z"]])
def test_fewer_trainings_say_what_is_known_of_each_network(models):
    found = count_by_recipe(rows(models, [1.0] * len(models)), OF)
    assert set(found["recipe_verdict"]) == {"one training"}
    assert set(found["holds"]) == {"yes, in this network"}
    assert set(found["trainings"]) == {1}


def test_two_recipes_are_compared_by_trainings_with_the_same_seed():
    of = trainings([["a", "b", "c"], ["x", "y", "z"]], {**dict(zip("abc", range(3), strict=False)),
                   **dict(zip("xyz", range(3), strict=False))})  # fmt: skip
    models, others = [[*"aabc"], [*"xyyz"]]
    pairs = rows(models, [0.1, 9.0, 0.2, 0.3]).assign(versus=others)
    found = count_by_recipe(pairs, of).set_index(["model", "versus"])
    # A pair of other seeds says nothing more, unless it is all that there is.
    assert [*found.index] == [("a", "x"), ("b", "y"), ("c", "z")]
    alone = count_by_recipe(rows(["a"], [9.0]).assign(versus="y"), of)
    assert alone["recipe_verdict"].tolist() == ["one training"]
    assert found.loc[("a", "x"), "values"] == [0.1, 0.2, 0.3]
    alone = rows(["a", "b", "c"], [1.0, 1.1, 1.2]).assign(versus="w")
    assert set(count_by_recipe(alone, of)["recipe_verdict"]) == {"one training"}
    # Where the other was trained once, the training with its seed is compared, on either side.
    once = trainings([["a", "b", "c"]], {**dict(zip("abc", range(3), strict=False)), "w": 1})
    assert count_by_recipe(alone, once)["model"].tolist() == ["b"]
    turned = alone.assign(model="w", versus=[*"abc"])
    assert count_by_recipe(turned, once)["versus"].tolist() == ["b"]


def test_a_claim_that_several_figures_show_counts_once():
    trained, values, chances = ["a", "b", "c"], [0.2, 0.3, 0.25], [0.01, 0.04, 0.03]
    twice = pd.concat([rows(trained, values, figure=each, p=chances) for each in "fg"])
    found = count_by_recipe(twice.reset_index(drop=True), OF)
    assert found["trainings"].tolist() == [3] * 6
    # Student's test over the trainings, of one recipe; not those of images of each network.
    chance = ttest_1samp(values, 0).pvalue
    assert found["recipe_p"].tolist() == pytest.approx([chance] * 6)
    assert found["q"].tolist() == pytest.approx([chance] * 6)
    # The rates of false verdicts of three tests on single networks.
    alone = count_by_recipe(twice.reset_index(drop=True), {})
    assert alone["q"].tolist() == pytest.approx([0.03, 0.04, 0.04] * 2)


def test_a_recipe_is_decided_only_as_the_counts_of_all_its_trainings_say():
    """Few large changes outweigh many small ones in the mean, but decide nothing alone."""
    margins = [0.2, 0.21, 0.22]
    for counts, verdict in (([7, 8, 9], "yes"), ([7, 8, 6], "open"), ([2, 2, 2], "open")):
        shares = [count / 12 for count in counts]
        table = rows([*"abc"], shares, margins, holds_above=0.5, measured_count=counts)
        found = count_by_recipe(table.assign(measured_total=12), OF)
        assert {*found["holds"]} == {verdict}
        most = ", most" if verdict == "yes" else ""
        listed = ", ".join(map(str, counts))
        assert {*found["verdict"]} == {f"{verdict}{most} ({listed} of 12)"}
    turned = rows([*"abc"], [0.1, 0.2, 0.5], [-m for m in margins], holds_above=0.5)
    assert {*count_by_recipe(turned, OF)["holds"]} == {"no"}


def test_rates_of_recipes_are_among_recipes():
    """The rates of Benjamini and Hochberg of two recipes: q of the larger p is that p."""
    spread = {"sure": [0.2, 0.21, 0.22], "unsure": [0.2, 0.3, 0.25]}
    tables = [rows([*"abc"], values, claim=name) for name, values in spread.items()]
    found = count_by_recipe(pd.concat(tables, ignore_index=True), OF).set_index("claim")
    chances = {name: ttest_1samp(values, 0).pvalue for name, values in spread.items()}
    assert found.loc["unsure", "q"].tolist() == pytest.approx([chances["unsure"]] * 3)
    least = min(2 * chances["sure"], chances["unsure"])
    assert found.loc["sure", "q"].tolist() == pytest.approx([least] * 3)


@pytest.mark.parametrize("study", ["", "cifar100"])
def test_no_verdict_on_a_bundled_recipe_contradicts_those_on_its_networks(study):
    path = Path(__file__).parents[1] / "expected" / study / "claims.csv"
    claims = pd.read_csv(path)
    of_recipes = claims[claims["trainings"] > 1]
    assert len(of_recipes) > 10
    for _, group in of_recipes.groupby(["recipe", "claim", "snapshot"], dropna=False):
        favours = {*(group["measured_value"] > group["holds_above"])}
        (verdict,) = {*group["holds"]}
        assert verdict == "open" or favours == {verdict == "yes"}


def under_no_effect(seeds: int, cases: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return values and margins of claims on networks whose trainings differ by chance.

    Each has 12 MSAs and 12 MLPs. A change over a block is that of its training, and noise of the
    images.
    """
    generator = np.random.default_rng(seeds)
    steps = generator.normal(0, np.hypot(SEEDS_OVER_IMAGES, 1), (cases, seeds, 24))
    msas, mlps = steps[..., 0::2], steps[..., 1::2]
    ranks = rankdata(np.cumsum(steps, axis=-1), axis=-1)
    centred = ranks - ranks.mean(axis=-1, keepdims=True)
    line = np.arange(24) - 11.5
    trend = centred @ line / np.sqrt((centred**2).sum(axis=-1) * (line**2).sum())
    nothing = np.full((cases, seeds), np.nan)
    return {
        "share": ((msas < 0).mean(axis=-1), -msas.mean(axis=-1)),
        "trend": (trend, np.arctanh(np.clip(trend, -0.999, 0.999))),
        "difference": (msas.mean(axis=-1) - mlps.mean(axis=-1), nothing),
    }


@pytest.mark.parametrize("statistic", ["share", "trend", "difference"])
@pytest.mark.parametrize("seeds", [3, 5])
def test_without_an_effect_a_recipe_is_decided_in_5_of_100_cases(statistic, seeds):
    cases = 1500
    values, margins = under_no_effect(seeds, cases)[statistic]
    models = [f"m{seed}" for seed in range(seeds)] * cases
    table = rows(models, values.ravel()).assign(
        claim=np.repeat([f"c{case}" for case in range(cases)], seeds),
        margin=margins.ravel(),
        holds_above=0.5 if statistic == "share" else 0.0,
    )
    of = {f"m{seed}": Training("r", seed) for seed in range(seeds)}
    found = count_by_recipe(table, of).drop_duplicates("claim")
    decided = found["recipe_verdict"].isin(["yes", "no"]).mean()
    # Where cases are counted, three counts have to agree as well.
    assert (0.02 if statistic == "share" else 0.04) <= decided <= 0.07
