"""Verdicts on recipes: Student's test over trainings, by hand and under no effect."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, ttest_1samp

from vitscope.claims.recipes import Training, add_recipes, trainings

# Spread of a change over trainings, in standard errors of its mean over 256 images: the median of
# the changes over the blocks of three trainings of a small ViT.
SEEDS_OVER_IMAGES = 8.5


def rows(
    models: list[str], values: list[float], margins: list[float] | None = None, **more
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "figure": "fig9",
            "model": models,
            "versus": None,
            "snapshot": None,
            "claim": "c",
            "measured_value": values,
            "measured_count": None,
            "measured_verdict": "yes",
            "margin": margins or np.nan,
            "holds_above": 0.0,
            "p": 0.01,
            **more,
        }
    )


OF = trainings([["a", "b", "c"]], {"a": 0, "b": 1, "c": 2})


def test_three_trainings_decide_by_students_interval():
    values = [0.2, 0.3, 0.25]
    found = add_recipes(rows(["a", "b", "c"], values), OF)
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
    found = add_recipes(share, OF)
    interval = ttest_1samp([0.2, -0.1, 0.3], 0).confidence_interval(0.95)
    assert found["recipe_low"].iloc[0] == pytest.approx(interval.low)
    assert found["values"].iloc[0] == [12, 11, 12]
    assert set(found["holds"]) == {"open"}


@pytest.mark.parametrize("models", [["a", "b"], ["a", "b", "z"]])
def test_fewer_trainings_say_what_is_known_of_each_network(models):
    found = add_recipes(rows(models, [1.0] * len(models)), OF)
    assert set(found["recipe_verdict"]) == {"one training"}
    assert set(found["holds"]) == {"yes, in this network"}
    assert set(found["trainings"]) == {1}


def test_two_recipes_are_compared_by_trainings_with_the_same_seed():
    of = trainings([["a", "b", "c"], ["x", "y", "z"]], {**dict(zip("abc", range(3), strict=False)),
                   **dict(zip("xyz", range(3), strict=False))})  # fmt: skip
    models, others = [[*"aabc"], [*"xyyz"]]
    pairs = rows(models, [0.1, 9.0, 0.2, 0.3]).assign(versus=others)
    found = add_recipes(pairs, of).set_index(["model", "versus"])
    assert found.loc[("a", "y"), "recipe_verdict"] == "one training"
    assert found.loc[("a", "x"), "values"] == [0.1, 0.2, 0.3]
    alone = rows(["a", "b", "c"], [1.0, 1.1, 1.2]).assign(versus="w")
    assert set(add_recipes(alone, of)["recipe_verdict"]) == {"one training"}


def test_a_claim_that_several_figures_show_counts_once():
    twice = pd.concat([rows(["a", "b", "c"], [0.2, 0.3, 0.25], figure=each) for each in "fg"])
    found = add_recipes(twice.reset_index(drop=True), OF)
    assert found["trainings"].tolist() == [3] * 6
    assert found["q"].tolist() == pytest.approx([0.01] * 6)


def test_rates_of_false_verdicts_are_those_of_benjamini_and_hochberg():
    chances = [0.001, 0.04, 0.03, 0.6, np.nan]
    found = add_recipes(rows([*"vwxyz"], [1.0] * 5).assign(p=chances), {})
    # Of four tests, the third and the second in order share the smaller of 0.03 * 4 / 2 and
    # 0.04 * 4 / 3.
    assert found["q"].tolist()[:4] == pytest.approx([0.004, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.6])
    assert np.isnan(found["q"].iloc[4])


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
    found = add_recipes(table, of).drop_duplicates("claim")
    decided = found["recipe_verdict"].isin(["yes", "no"]).mean()
    assert 0.04 <= decided <= 0.07
