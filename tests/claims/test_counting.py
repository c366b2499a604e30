import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.claims import EVIDENCE
from vitscope.claims import counting
from vitscope.claims.published import Published, read_published
from vitscope.claims.report import introduction, sections
from vitscope.files.pages import Section, as_markdown
from vitscope.measures import rooms
from vitscope.workflow.tables import find_table

ROOT = Path(__file__).parents[2]
FIG9 = ROOT / "resources" / "published" / "fig9.csv"
NEEDED = rooms.kinds()["feature_variance"].published


def measured(model: str, kinds: list[str], sizes: list[int], variance) -> pd.DataFrame:
    count = len(kinds)
    return pd.DataFrame(
        {
            "model": model,
            "index": range(count),
            "kind": kinds,
            "depth": np.arange(count) / (count - 1),
            "height": sizes,
            "width": sizes,
            "variance": np.asarray(variance, dtype=float),
        }
    )


def count_claims(figure, kind, table, models, theirs) -> pd.DataFrame:
    """Count on one table, which has the columns of the blocks too."""
    tables = {"feature_variance": table, "blocks": table}
    return counting.count_claims(figure, EVIDENCE[kind], tables, models, theirs)


def score_agreement(figure, kind, table, theirs) -> pd.DataFrame:
    tables = {"feature_variance": table, "blocks": table}
    return counting.score_agreement(figure, EVIDENCE[kind], tables, theirs)


def sections_of(claims, agreement, labels) -> list[Section]:
    return sections(claims, agreement, labels, EVIDENCE.values())


def published(depth, variance, same_model=True) -> dict[str, Published]:
    points = pd.DataFrame({"index": range(len(depth)), "depth": depth, "variance": variance})
    points = points.assign(kind="conv", subsampling=False)
    return {"m": Published("Theirs", points, same_model)}


def counts(table, theirs=None) -> dict[str, tuple[int, int]]:
    claims = count_claims("fig", "feature_variance", table, ["m"], theirs or {})
    return {
        row["claim"]: (row["measured_count"], row["measured_total"])
        for row in claims.to_dict("records")
    }


def test_the_published_figure_is_counted_as_by_hand():
    with FIG9.open(newline="") as file:
        rows = list(csv.DictReader(file))
    curve = {
        name: [float(r["variance"]) for r in rows if r["model"] == name]
        for name in ("ResNet", "ViT")
    }
    vit, resnet = curve["ViT"], curve["ResNet"]
    falls = sum(vit[i] < vit[i - 1] for i in range(1, 25, 2))
    rises = sum(vit[i] > vit[i - 1] for i in range(2, 25, 2))
    convs = [i for i in range(1, 17) if i not in (4, 8, 14)]
    grows = sum(resnet[i] > resnet[i - 1] for i in convs)
    assert (falls, rises, grows) == (12, 8, 12)

    table = pd.concat(
        [
            measured("vit", ["stem"] + ["msa", "mlp"] * 12, [16] * 25, vit),
            measured(
                "resnet", ["stem"] + ["conv"] * 16, [32] * 4 + [16] * 4 + [8] * 6 + [4] * 3, resnet
            ),
        ]
    )
    theirs = read_published(FIG9, NEEDED, {"vit": "ViT", "resnet": "ResNet"}, same_models=True)
    claims = count_claims("fig9", "feature_variance", table, ["resnet", "vit"], theirs)
    found = {
        (row["model"], row["claim"]): tuple(
            row[f"{side}_{what}"]
            for side in ("published", "measured")
            for what in ("count", "total")
        )
        for row in claims.to_dict("records")
    }
    assert found == {
        ("resnet", "conv_increases_variance"): (12, 13, 12, 13),
        ("resnet", "subsampling_reduces_variance"): (3, 3, 3, 3),
        ("vit", "msa_reduces_variance"): (12, 12, 12, 12),
        ("vit", "mlp_increases_variance"): (8, 12, 8, 12),
    }
    assert claims["holds"].all()
    scores = score_agreement("fig9", "feature_variance", table, theirs)
    assert scores["rank_correlation"].tolist() == pytest.approx([1, 1])
    assert scores["normalized_rmse"].tolist() == pytest.approx([0, 0], abs=1e-6)
    assert scores["published_points"].tolist() == [25, 17]


def test_subsampling_blocks_count_for_subsampling_only():
    kinds = ["stem", "conv", "conv", "msa", "pool", "msa"]
    table = measured("m", kinds, [8, 8, 4, 4, 4, 2], [1, 2, 1, 3, 2, 5])
    assert counts(table) == {
        "conv_increases_variance": (1, 1),
        "msa_reduces_variance": (0, 1),
        "subsampling_reduces_variance": (2, 3),
    }


def test_no_change_is_in_favour_of_nothing():
    table = measured("m", ["stem", "msa", "mlp"], [8] * 3, [1, 1, 1])
    assert counts(table) == {"msa_reduces_variance": (0, 1), "mlp_increases_variance": (0, 1)}


def test_blocks_without_a_value_are_not_counted():
    table = measured("m", ["stem", "mlp", "mlp", "mlp"], [8] * 4, [1, 2, np.nan, np.nan])
    assert counts(table) == {"mlp_increases_variance": (1, 1)}


@pytest.mark.parametrize(("falling", "holds"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_claim_holds_in_more_than_half_of_the_blocks(falling, holds):
    values = [9, *(8 if i < falling else 10 for i in range(3))]
    kinds = ["stem", "msa", "stem", "msa", "stem", "msa"]
    variance = [9, values[1], 9, values[2], 9, values[3]]
    claims = count_claims(
        "f", "feature_variance", measured("m", kinds, [8] * 6, variance), ["m"], {}
    )
    assert claims["holds"].tolist() == [holds]
    assert claims["measured_value"].tolist() == [falling / 3]


def test_half_of_the_blocks_is_not_enough():
    table = measured("m", ["stem", "msa", "msa"], [8] * 3, [2, 1, 3])
    claims = count_claims("f", "feature_variance", table, ["m"], {})
    found = claims[["measured_count", "measured_value", "holds"]]
    assert found.to_numpy().tolist() == [[1, 0.5, False]]


@given(st.permutations(range(9)))
def test_rank_correlation_is_that_of_the_textbook(ranks):
    depth = np.linspace(0, 1, 9)
    table = measured("m", ["stem"] + ["conv"] * 8, [8] * 9, np.exp(ranks))
    scores = score_agreement("f", "feature_variance", table, published(depth, np.arange(9.0)))
    squares = sum((rank - i) ** 2 for i, rank in enumerate(ranks))
    assert scores["rank_correlation"][0] == pytest.approx(1 - 6 * squares / (9 * (81 - 1)))


def test_the_error_is_relative_to_the_published_range():
    theirs = published([0, 0.5, 1], [1.0, 2.0, 5.0])
    table = measured("m", ["stem", "conv", "conv"], [8] * 3, [1.5, 2.5, 5.5])
    assert score_agreement("f", "feature_variance", table, theirs)["normalized_rmse"][0] == 0.125


def test_curves_of_different_length_meet_by_interpolation_in_depth():
    line = np.linspace(0, 1, 7)
    table = measured("m", ["stem"] + ["conv"] * 4, [8] * 5, 2 + 3 * np.arange(5) / 4)
    scores = score_agreement("f", "feature_variance", table, published(line, 2 + 3 * line))
    assert scores["normalized_rmse"][0] == pytest.approx(0, abs=1e-6)
    assert scores[["published_points", "measured_points"]].to_numpy().tolist() == [[7, 5]]


def test_only_the_same_model_has_a_score():
    theirs = published([0, 1], [1.0, 2.0], same_model=False)
    table = measured("m", ["stem", "conv"], [8] * 2, [1, 2])
    assert score_agreement("f", "feature_variance", table, theirs).empty
    claims = count_claims("f", "feature_variance", table, ["m"], theirs)
    assert claims["published_total"].tolist() == [1]


@pytest.mark.parametrize(
    ("ours", "error"), [([3, 3, 3], pytest.approx(np.sqrt(3) / 4)), ([1, 2, np.nan], None)]
)
def test_a_curve_without_ranks_has_no_correlation(ours, error):
    theirs = published([0, 0.5, 1], [1.0, 2.0, 5.0])
    table = measured("m", ["stem", "conv", "conv"], [8] * 3, ours)
    scores = score_agreement("f", "feature_variance", table, theirs)
    assert scores["rank_correlation"].isna().all()
    (found,) = scores["normalized_rmse"]
    assert found == error if error is not None else pd.isna(found)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which None says that there is no value."""
    return frame.astype(object).where(frame.notna(), None)


@pytest.fixture
def both():
    table = measured("m", ["stem", "conv", "msa"], [8] * 3, [1, 2, 3])
    theirs = published([0, 0.5, 1], [1.0, 2.0, 3.0])
    claims = count_claims("fig9", "feature_variance", table, ["m"], theirs)
    return claims, score_agreement("fig9", "feature_variance", table, theirs)


def test_both_tables_are_the_documented_ones(both, tmp_path):
    for name, frame in zip(("claims", "agreement"), both, strict=True):
        path = tmp_path / f"{name}.parquet"
        find_table(name).write(frame, path)
        again = find_table(name).read(path)
        pd.testing.assert_frame_equal(plain(again), plain(frame), check_dtype=False)
    assert find_table("claims").read(tmp_path / "claims.parquet")[
        "published_count"
    ].isna().tolist() == [
        True,
        False,
    ]


def test_a_study_without_published_points_has_an_empty_table(tmp_path):
    table = measured("m", ["stem", "conv"], [8] * 2, [1, 2])
    find_table("agreement").write(
        score_agreement("f", "feature_variance", table, {}), tmp_path / "a"
    )
    assert find_table("agreement").read(tmp_path / "a").empty


def test_the_text_says_what_was_counted(both):
    text = introduction(both[0])
    text = as_markdown("Claims of mini", text, sections_of(*both, {"m": "My model"}))
    assert "more than half" in text
    lines = text.splitlines()
    statement = "Convs that do not subsample increase the feature map variance"
    assert f"| My model | {statement} | 2 of 2 | 1 of 1 | yes |" in lines
    assert "| My model | MSAs reduce the feature map variance | – | 0 of 1 | no |" in lines
    assert "| fig9 | My model | Theirs, 3 points | 1.000 | 0.000 |" in lines
    alone = sections_of(both[0], both[1].iloc[:0], {"m": "My model"})
    assert [section.heading for section in alone] == ["fig9"]


def test_counting_needs_neither_torch_nor_matplotlib():
    code = (
        "import sys, vitscope.claims.counting, vitscope.claims.report, tests.helpers.claims;"
        "sys.exit(bool({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def comparison(**values) -> pd.DataFrame:
    row = {"figure": "shape", "model": "vit", "versus": "resnet", "claim": "msa_goes_by_shape"}
    row |= {"statement": "MSAs go by shape", "measured_value": 0.25, "holds": True}
    row |= {"measure": "difference of shape bias"}
    return pd.DataFrame([row | values], columns=list(find_table("claims").columns))


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ({}, "– | +0.250 | yes"),
        ({"apart": True}, "– | +0.250, intervals of each model alone are apart | yes"),
        ({"apart": False}, "– | +0.250, intervals of each model alone overlap | yes"),
        ({"ci_low": -0.125, "ci_high": 0.5}, "– | +0.250 (-0.125 to +0.500) | yes"),
        (
            {"measured_count": 3, "measured_total": 6, "versus_count": 2, "versus_total": 8},
            "– | 3 of 6 against 2 of 8, +0.250 | yes",
        ),
        ({"measured_value": -0.5, "holds": False}, "– | -0.500 | no"),
        ({"measured_value": None, "holds": None}, "– | – | –"),
        ({"published_value": 0.5}, "+0.500 | +0.250 | yes"),
        ({"published_value": 0.5, "measure": "share of shapes"}, "50 % | 25 % | yes"),
        (
            {
                "measure": "share of shapes",
                "measured_count": 1,
                "measured_total": 4,
                "ci_low": 0.0,
                "ci_high": 0.5,
            },
            "– | 1 of 4 (0 % to 50 %) | yes",
        ),
    ],
)
def test_the_page_gives_differences_with_their_sign(values, cells):
    claims = comparison(**values)
    labels = {"vit": "ViT-Ti", "resnet": "ResNet-50"}
    found = sections_of(claims, pd.DataFrame(), labels)
    text = as_markdown("Claims", introduction(claims), found)
    assert f"| ViT-Ti against ResNet-50 | MSAs go by shape | {cells} |" in text.splitlines()
    assert found[0].text.startswith("The paper infers this from Fig. 2b")


def test_the_page_names_the_snapshot():
    claims = comparison(snapshot="warmup")
    (section,) = sections_of(claims, pd.DataFrame(), {"vit": "ViT-Ti", "resnet": "ResNet-50"})
    assert section.rows[0][0] == "ViT-Ti against ResNet-50, snapshot warmup"


def test_each_figure_says_once_what_it_counts():
    table = measured("m", ["stem", "conv", "msa"], [8] * 3, [1, 2, 3])
    claims = count_claims("fig9", "feature_variance", table, ["m"], {})
    (section,) = sections_of(claims, pd.DataFrame(), {"m": "M"})
    assert len(section.rows) == 2
    assert section.text.count("Counted are blocks of one kind") == 1
