"""What a study found, against counts from the expected claims of the default study by pandas."""

import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from vitscope.claims.findings import Finding, Shown, findings_of_study
from vitscope.measures import registry
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
LABELS = {name: model.label for name, model in MINI.models.items()}
REGISTRY = registry.of(MINI)
FIGURES = {
    name: Shown(REGISTRY.declared(each.measure).question, bool(each.options.get("change")))
    for name, each in MINI.figures.items()
}
DISTINCT = ["model", "versus", "snapshot", "claim"]


@pytest.fixture(scope="module")
def claims() -> pd.DataFrame:
    """The table of claims; the lists that text does not keep are made of its rows again."""
    found = pd.read_csv(Path(__file__).parents[1] / "expected" / "claims.csv")
    once = found.drop_duplicates(DISTINCT)
    of_runs = once.groupby(["recipe", "claim"])["measured_count"].agg(list)
    keys = zip(found["recipe"], found["claim"], strict=True)
    return found.assign(values=[of_runs.get(key) for key in keys])


def find(claims: pd.DataFrame, count: int = 6, **figures: Shown) -> list[Finding]:
    order = claims["claim"].unique()
    return findings_of_study(claims, figures or FIGURES, order, LABELS, count)


def test_six_figures_have_a_finding_each_of_a_claim_of_the_paper(claims):
    found = find(claims)
    assert len({each.figure for each in found}) == len({each.sentence for each in found}) == 6
    # They stand in the order of the study, and each counts what its sentence says.
    assert [name for name in MINI.figures if name in {each.figure for each in found}] == [
        each.figure for each in found
    ]
    for each in found:
        rows = claims[claims["figure"] == each.figure]
        said = rows[[each.sentence.startswith(one.partition(" (")[0]) for one in rows["statement"]]]
        assert said["source"].str.match(r"Fig\.|Section|abstract").all()
        assert not said.empty
    questions = Counter(FIGURES[each.figure].question for each in found)
    asked = {FIGURES[name].question for name in claims["figure"] if name in FIGURES}
    paper = claims[claims["source"].str.startswith("Fig.")]
    assert {*questions} == {FIGURES[name].question for name in paper["figure"]} <= asked


def test_a_sentence_counts_the_blocks_of_each_network_and_the_networks(claims):
    name = "msa_reduces_variance"
    order = [name, *claims["claim"].unique()]
    (found,) = [
        each
        for each in findings_of_study(claims, FIGURES, order, LABELS, 6)
        if each.sentence.startswith("MSAs reduce the feature map variance: ")
    ]
    # The figure is the first of bars, which show the changes that are counted.
    counting = [*claims.loc[claims["claim"] == name, "figure"].unique()]
    assert found.figure == next(each for each in counting if each.endswith("_change"))
    rows = claims[claims["claim"] == name].drop_duplicates(DISTINCT).set_index("model")
    count, total = rows.loc["vit_scenes", ["measured_count", "measured_total"]].astype(int)
    assert f"holds for {LABELS['vit_scenes']} ({count} of {total} MSAs); " in found.sentence
    first = {group[0]: group for group in MINI.repeats}
    others = {each for group in first.values() for each in group[1:]}
    alone = rows[~rows.index.isin(others)]
    fails = alone["holds"].str.startswith("no").sum()
    failed = found.sentence.partition("fails for ")[2]
    assert failed.count(" of ") + int(re.search(r"and (\d+) more", failed)[1]) == fails
    assert found.verdict.startswith("no") == (fails > alone["holds"].str.startswith("yes").sum())


def test_a_recipe_is_said_from_its_fewest_to_its_most(claims):
    only = claims[(claims["claim"] == "msa_reduces_variance") & (claims["recipe"] == "vit")]
    (found,) = find(only)
    counts = only.drop_duplicates(DISTINCT)["measured_count"].astype(int)
    assert counts.min() < counts.max()
    said = f"fails for ViT ({counts.min()} to {counts.max()} of 12 MSAs)."
    assert found.sentence == f"MSAs reduce the feature map variance: {said}"
    assert found.verdict == "no"


def test_a_value_is_said_with_what_it_is(claims):
    only = claims[(claims["claim"] == "stages_are_blocks") & (claims["model"] == "swin")]
    (found,) = find(only)
    value = f"{only['measured_value'].iloc[0]:+.3f}"
    assert found.sentence.endswith(f": holds for Swin (difference of CKA: {value}).")


def test_a_pair_and_a_moment_are_named(claims):
    (found,) = find(claims[claims["claim"] == "weak_bias_errs_more"].iloc[:1])
    assert "holds for ViT against ResNet (difference of test error: " in found.sentence
    (found,) = find(
        claims[
            (claims["claim"] == "msa_has_negative_eigenvalues")
            & (claims["figure"] == "fig1c")
            & (claims["model"] == "vit")
        ]
    )
    assert "fails for ViT at warmup (0 of 6 batches), ViT at end (0 of 6)." in found.sentence


def test_a_study_shows_what_it_has_and_no_finding_without_claims(claims):
    few = claims[claims["figure"].isin(["fig2b", "attention_nmi"])]
    assert [each.figure for each in find(few)] == ["fig2b", "attention_nmi"]
    # A claim of the paper comes before one of others.
    assert [each.figure for each in find(few, 1)] == ["fig2b"]
    assert find(claims.iloc[:0]) == []
    assert find(claims.assign(holds=None)) == []
