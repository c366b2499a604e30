import pandas as pd
import pytest

from tests.helpers.claims import (
    agreement,
    count_variances,
    evidence,
    kinds_with_claims,
    published_variances,
    variances,
    with_resamples,
)
from vitscope.claims import report
from vitscope.claims.counting import count_by_recipe, join_rows_of_figures, trainings
from vitscope.claims.report import introduction_to_claims
from vitscope.claims.tables import AGREEMENT, CLAIMS, COUNTED
from vitscope.claims.verdicts import say_verdict
from vitscope.files.pages import page_as_markdown

NAMES = {"vit": "ViT-Ti", "resnet": "ResNet-50"}


def sections(claims: pd.DataFrame, scores: pd.DataFrame, labels: dict[str, str]):
    return report.sections_of_claims(
        claims, scores, labels, [evidence(kind) for kind in kinds_with_claims()]
    )


def test_what_is_doubted_stands_above_the_claims():
    assert report.list_warnings([]) == []
    text = page_as_markdown("Claims", "", report.list_warnings(["vit is wrong | always", "cat"]))
    assert "## Warnings" in text
    assert "| vit is wrong \\| always |\n| cat |" in text


def test_the_text_says_what_was_counted():
    table = variances("m", ["stem", "conv", "msa"], [8] * 3, [1, 2, 3])
    table = with_resamples(table, "variance", [0.01, 0.01, 5])
    theirs = published_variances([0, 0.5, 1], [1.0, 2.0, 3.0])
    claims = count_variances(table, theirs)
    scored = agreement("feature_variance", table, theirs)
    told = sections(claims, scored, {"m": "My model"})
    text = page_as_markdown("Claims of mini", introduction_to_claims(claims), told)
    assert "more than half" in text
    assert "of 2 tested rows on one network" in text
    lines = text.splitlines()
    statement = "Convs that do not subsample increase the feature map variance"
    certain = "1 of 1 (1 certain, 0 open) | yes (1 of 1), in this network"
    assert f"| My model | {statement} | 2 of 2 | {certain} |" in lines
    reduce = "MSAs reduce the feature map variance"
    unsure = "0 of 1 (0 certain, 1 open) | open (0 of 1)"
    assert f"| My model | {reduce} | – | {unsure} |" in lines
    # By model and in all.
    assert "| model | open | hold in this network |" in lines
    assert {"| My model | 1 | 1 |", "| all | 1 | 1 |"} <= {*lines}
    scores = [
        "100 % (line 100 %, other network –)",
        "– (line –, other network –)",
        "0.000 decades, 0.0 SD (line 0.029, other network –)",
    ]
    assert f"| fig | My model | Theirs, 3 of 3 points | {' | '.join(scores)} |" in lines
    alone = sections(claims, scored.iloc[:0], {"m": "My model"})
    assert [section.heading for section in alone] == ["Summary", "fig"]


def comparison(**values) -> pd.DataFrame:
    row = {"figure": "shape", "model": "vit", "versus": "resnet", "claim": "msa_goes_by_shape"}
    row |= {"statement": "MSAs go by shape", "measured_value": 0.25, "percent": False}
    row |= {"measure": "difference of shape bias", "holds_above": 0.0, "trainings": 1}
    row |= {"recipe_verdict": "one training", "holds": "yes, without an interval"}
    claims = pd.DataFrame([row | values], columns=list(CLAIMS.columns))
    return claims.assign(verdict=[say_verdict(each) for each in claims.to_dict("records")])


IN_NETWORK = "yes, in this network"
OPEN = {"recipe_verdict": "open", "holds": "open"}


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ({}, "+0.250 | yes, without an interval"),
        (
            {"measured_low": -0.125, "measured_high": 0.5, "holds": "open", "q": 0.4},
            "+0.250 (-0.125 to +0.500) | open",
        ),
        ({"measured_value": None, "holds": None}, "– | –"),
        ({"percent": True}, "+25.0 % | yes, without an interval"),
        (
            {"published_value": 0.5, "published_total": 2, "published_count": 1, "percent": True},
            "1 of 2 | 25 % | yes, without an interval",
        ),
        (
            {"published_value": 0.5, "published_low": 0.25, "published_high": 0.75},
            "+0.500 (+0.250 to +0.750) | +0.250 | yes, without an interval",
        ),
        (
            {"measured_count": 1, "measured_total": 4, "certain": 3, "percent": True},
            "1 of 4 (3 certain, 1 open) | yes (1 of 4), without an interval",
        ),
        (
            {"measured_count": 4, "measured_total": 4, "certain": 4, "percent": True}
            | {"holds": "yes, in this network", "holds_above": 0.5},
            "4 of 4 (4 certain, 0 open) | yes, all 4, in this network",
        ),
        (
            {"measured_count": 3, "measured_total": 4, "certain": 4, "percent": True}
            | {"holds": "yes, in this network", "holds_above": 0.5},
            "3 of 4 (4 certain, 0 open) | yes, most (3 of 4), in this network",
        ),
        (
            {"holds": "open", "batches": 5, "fewest_batches": 6},
            "+0.250 | open: too few batches to decide (5 of 6)",
        ),
        ({"doubt": "accuracy of chance"}, "+0.250 | yes, without an interval (accuracy of chance)"),
        (
            {"holds": IN_NETWORK, "q": 0.07, "doubt": "accuracy not measured"},
            f"+0.250 | {IN_NETWORK} (q 0.07; accuracy not measured)",
        ),
        # More than 5 of 100 verdicts that are as sure are false.
        ({"holds": IN_NETWORK, "q": 0.051}, f"+0.250 | {IN_NETWORK} (q 0.051)"),
        ({"holds": IN_NETWORK, "q": 0.05}, f"+0.250 | {IN_NETWORK}"),
        (
            OPEN | {"trainings": 3, "values": [0.25, -0.5, 0.125]},
            "+0.250; of 3 trainings: +0.250, -0.500, +0.125 | open",
        ),
        (
            {"measured_count": 2, "measured_total": 2, "certain": 2, "percent": True, "q": 0.2}
            | {"trainings": 3, "values": [2.0, 1.0, 2.0], "recipe_verdict": "yes", "holds": "yes"},
            "2 of 2 (2 certain, 0 open); of 3 trainings: 2, 1, 2 | yes (2, 1, 2 of 2) (q 0.20)",
        ),
    ],
)
def test_findings_are_told_in_words(values, cells):
    claims = comparison(**values)
    _, section = sections(claims, pd.DataFrame(), NAMES)
    text = page_as_markdown("Claims", introduction_to_claims(claims), [section])
    assert f"| ViT-Ti against ResNet-50 | MSAs go by shape | {cells} |" in text.splitlines()
    assert section.text.startswith("The paper infers this from Fig. 2b")


def test_without_published_points_there_are_no_columns_for_them():
    summary, section = sections(comparison(), pd.DataFrame(), NAMES)
    assert section.header == ["model", "claim", "measured", "holds"]
    assert summary.header == ("model", "hold, without an interval")


def test_verdicts_that_chance_may_have_decided_are_counted():
    claims = pd.concat([comparison(claim=f"c{n}", p=0.01) for n in range(60)])
    again = claims.assign(figure="other")
    untested = comparison(claim="exact")
    counted = pd.concat([claims, again, untested])
    assert "Chance may have decided 3 of 60 tested rows on one network." in introduction_to_claims(
        counted
    )


def test_a_claim_that_several_figures_show_counts_once():
    claims = comparison()
    again = pd.concat([claims, claims.assign(figure="other")])
    (section,) = report.summary_of_verdicts(again, NAMES)
    assert section.rows == [("ViT-Ti", "1"), ("all", "1")]
    assert report.summary_of_verdicts(claims.iloc[:0], {}) == []
    counted = report.count_in_words(again)
    assert counted.startswith("1 claims: 1 hold and 0 fail without an interval. Chance may have")


def test_the_snapshot_is_named():
    claims = comparison(snapshot="warmup")
    _, section = sections(claims, pd.DataFrame(), NAMES)
    assert section.rows[0][0] == "ViT-Ti against ResNet-50, snapshot warmup"


def test_a_study_without_claims_says_so(tmp_path):
    claims, scores = join_rows_of_figures(CLAIMS, []), join_rows_of_figures(AGREEMENT, [])
    for table, frame in ((CLAIMS, claims), (AGREEMENT, scores)):
        table.write(frame, tmp_path / table.name)
        assert table.read(tmp_path / table.name).empty
    assert sections(claims, scores, {}) == []
    assert introduction_to_claims(claims).startswith("None of this study's figures")


def test_trainings_of_a_recipe_stand_beside_each_other():
    kinds = ["stem", "msa", "mlp", "msa", "mlp"]
    curves = {"a": [5, 4, 6, 5, 7], "b": [5, 4, 6, 5.5, 8], "c": [5, 4.2, 6, 5.2, 7]}
    tables = [variances(name, kinds, [8] * 5, curve) for name, curve in curves.items()]
    of = trainings([["a", "b", "c"]], {"a": 0, "b": 1, "c": 2})
    claims = count_variances(pd.concat(tables))
    again = count_by_recipe(claims[list(COUNTED)], of)
    found = report.findings_as_table(again, {name: f"ViT {name}" for name in "abc"})
    of_msas = found[found["claim"] == "MSAs reduce the feature map variance"]
    assert set(of_msas["measured"]) == {"2 of 2; of 3 trainings: 2, 2, 2"}
    assert set(of_msas["holds"]) == {"yes, all 2"}
