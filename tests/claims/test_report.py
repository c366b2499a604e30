"""The page of claims, and the tables that it is made of."""

import pandas as pd
import pytest

from tests.helpers.claims import (
    agreement,
    count_variances,
    evidence,
    kinds_with_claims,
    published_variances,
    variances,
)
from vitscope.claims import report
from vitscope.claims.counting import joined
from vitscope.claims.report import introduction
from vitscope.claims.tables import AGREEMENT, CLAIMS
from vitscope.files.pages import as_markdown

NAMES = {"vit": "ViT-Ti", "resnet": "ResNet-50"}


def sections(claims: pd.DataFrame, scores: pd.DataFrame, labels: dict[str, str]):
    return report.sections(claims, scores, labels, [evidence(kind) for kind in kinds_with_claims()])


@pytest.fixture
def both():
    table = variances("m", ["stem", "conv", "msa"], [8] * 3, [1, 2, 3])
    theirs = published_variances([0, 0.5, 1], [1.0, 2.0, 3.0])
    claims = count_variances(table, theirs)
    return claims, agreement("feature_variance", table, theirs)


def test_what_is_doubted_stands_above_the_claims():
    assert report.list_warnings([]) == []
    text = as_markdown("Claims", "", report.list_warnings(["vit is wrong | always", "cat"]))
    assert "## Warnings" in text
    assert "| vit is wrong \\| always |\n| cat |" in text


def test_the_text_says_what_was_counted(both):
    text = introduction(both[0])
    text = as_markdown("Claims of mini", text, sections(*both, {"m": "My model"}))
    assert "more than half" in text
    lines = text.splitlines()
    statement = "Convs that do not subsample increase the feature map variance"
    undecided = "1 of 1 (21 % to 100 %) | undecided"
    assert f"| My model | {statement} | 2 of 2 | {undecided} |" in lines
    reduce = "MSAs reduce the feature map variance"
    assert f"| My model | {reduce} | – | 0 of 1 (0 % to 79 %) | undecided |" in lines
    # By model and in all: two are undecided, and one of them is in the published points, too.
    assert "| My model | 0 | 0 | 2 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |" in lines
    assert "| all | 0 | 0 | 2 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |" in lines
    assert "| fig | My model | Theirs, 3 points | 1.000 | 0.000 |" in lines
    alone = sections(both[0], both[1].iloc[:0], {"m": "My model"})
    assert [section.heading for section in alone] == ["Summary", "fig"]


def comparison(**values) -> pd.DataFrame:
    row = {"figure": "shape", "model": "vit", "versus": "resnet", "claim": "msa_goes_by_shape"}
    row |= {"statement": "MSAs go by shape", "measured_value": 0.25, "holds": "yes"}
    row |= {"measure": "difference of shape bias", "holds_above": 0.0}
    return pd.DataFrame([row | values], columns=list(CLAIMS.columns))


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ({}, "+0.250 | yes"),
        (
            {"ci_low": -0.125, "ci_high": 0.5, "holds": "undecided"},
            "+0.250 (-0.125 to +0.500) | undecided",
        ),
        (
            {"measured_count": 3, "measured_total": 6, "versus_count": 2, "versus_total": 8},
            "3 of 6 against 2 of 8, +0.250 | yes",
        ),
        ({"measured_value": None, "holds": None}, "– | –"),
        ({"published_value": 0.5, "measure": "share of shapes"}, "50 % | 25 % | yes"),
        (
            {
                "measure": "share of shapes",
                "measured_count": 1,
                "measured_total": 4,
                "ci_low": 0.1,
                "ci_high": 0.5,
            },
            "1 of 4 (10 % to 50 %) | yes",
        ),
    ],
)
def test_comparisons_have_a_sign(values, cells):
    claims = comparison(**values)
    _, section = sections(claims, pd.DataFrame(), NAMES)
    text = as_markdown("Claims", introduction(claims), [section])
    assert f"| ViT-Ti against ResNet-50 | MSAs go by shape | {cells} |" in text.splitlines()
    assert section.text.startswith("The paper infers this from Fig. 2b")


def test_without_published_points_there_are_no_columns_for_them():
    summary, section = sections(comparison(), pd.DataFrame(), NAMES)
    assert section.header == ["model", "claim", "measured", "holds"]
    assert summary.header[1:] == ("hold", "fail", "undecided", *summary.header[4:])
    assert [each.endswith(", without an interval") for each in summary.header[4:]] == [True, True]


def test_the_snapshot_is_named():
    claims = comparison(snapshot="warmup")
    _, section = sections(claims, pd.DataFrame(), NAMES)
    assert section.rows[0][0] == "ViT-Ti against ResNet-50, snapshot warmup"


def test_a_study_without_claims_says_so(tmp_path):
    claims, scores = joined(CLAIMS, []), joined(AGREEMENT, [])
    for table, frame in ((CLAIMS, claims), (AGREEMENT, scores)):
        table.write(frame, tmp_path / table.name)
        assert table.read(tmp_path / table.name).empty
    assert sections(claims, scores, {}) == []
    assert introduction(claims).startswith("None of this study's figures")


def claims_of_seeds(**curves: list[float]) -> pd.DataFrame:
    """Return the claims of models of two MSAs and two MLPs, by their variances."""
    kinds = ["stem", "msa", "mlp", "msa", "mlp"]
    tables = [variances(name, kinds, [8] * 5, curve) for name, curve in curves.items()]
    return count_variances(pd.concat(tables))


def test_seeds_say_how_far_a_claim_moves_by_training_alone():
    # Of two MSAs, 2, 1 and 0 lower it; both MLPs raise it in all.
    claims = claims_of_seeds(a=[5, 4, 6, 5, 7], b=[5, 4, 6, 7, 8], c=[1, 2, 3, 4, 5])
    labels = {name: f"ViT {name}" for name in "abc"}
    (section,) = report.seeds(claims, labels, [["a", "b", "c"]])
    assert section.heading == "Seeds: ViT a, ViT b, ViT c"
    assert section.rows == [
        ("MSAs reduce the feature map variance", "2 of 2; 1 of 2; 0 of 2", "100 %"),
        ("MLPs increase the feature map variance", "2 of 2; 2 of 2; 2 of 2", "0 %"),
        ("mean", "2 claims", "50 %"),
    ]


def test_without_repeats_nothing_is_said_of_seeds():
    claims = claims_of_seeds(a=[5, 4, 6, 5, 7])
    assert report.seeds(claims, {"a": "A"}, []) == []
    assert report.seeds(joined(CLAIMS, []), {}, [["a", "b"]]) == []
