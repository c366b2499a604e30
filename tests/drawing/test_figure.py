import numpy as np
import pandas as pd
import pytest

from tests.drawing import test_every_kind
from tests.drawing.test_every_kind import MEMBERS, PUBLISHED, axes_of, draw
from tests.helpers.claims import published
from vitscope.claims.points import PublishedCurve
from vitscope.drawing.figure import figure_as_table, literal, rows_of
from vitscope.drawing.legends import percent, published_legend_label
from vitscope.measures.registry import kinds

ROWS = pd.DataFrame(
    {
        "model": ["b", "a", "a", "a"],
        "snapshot": ["end", "end", "init", "end"],
        "index": [0, 2, 0, 1],
    }
)


def test_rows_are_those_of_the_model_in_order():
    found = rows_of(ROWS, "a", ["index"])
    assert found["index"].tolist() == found.index.tolist() == [0, 1, 2]
    assert rows_of(ROWS, "a", snapshot="end")["index"].tolist() == [2, 1]


def test_rows_that_are_alike_keep_their_order():
    many = pd.DataFrame({"model": "a", "image": [1, 0] * 50, "number": range(100)})
    found = rows_of(many, "a", ["image"])
    assert found["number"].tolist() == [*range(1, 100, 2), *range(0, 100, 2)]


# Of these, columns of the tables are drawn as they are.
PLAIN = {
    "feature_variance": ("depth", "variance"),
    "fourier_depth": ("depth", "delta_log_amplitude"),
    "fourier_curves": ("frequency", "delta_log_amplitude"),
    "frequency_noise": ("frequency", "change"),
    "spectrum": ("depth", "share"),
    "token_similarity": ("depth", "similarity"),
    "attention_entropy": ("depth", "entropy"),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_every_point_of_a_line_is_there(kind):
    compared = (1,) if kind in PUBLISHED and not kinds()[kind].for_claims else ()
    figure = draw(kind, 2, compared)
    tables = {
        name: test_every_kind.rows_of(name, MEMBERS[0].model) for name in kinds()[kind].tables
    }
    theirs = {}
    if compared:
        file, series = PUBLISHED[kind]
        theirs = published(kind, file, {MEMBERS[1].model: series})
    points = figure_as_table(tables, MEMBERS[:2], theirs)
    there = {*map(tuple, points[[*PLAIN[kind]]].round(9).to_numpy())}
    # What points are compared with, as the largest entropy there can be, is dashed.
    lines = [
        line for axes in axes_of(figure) for line in axes.lines if line.get_linestyle() != "--"
    ]
    drawn = [line.get_xydata() for line in lines if line.get_transform() == line.axes.transData]
    drawn = np.concatenate(drawn).round(9)
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    assert len(drawn) > 4
    assert {*map(tuple, drawn)} <= there
    assert points["published"].notna().sum() == sum(len(each.points) for each in theirs.values())
    assert points.loc[points["published"].isna(), "label"].eq(MEMBERS[0].label).all()


SAME, OTHER = (PublishedCurve("ViT", pd.DataFrame(), same) for same in (True, False))


@pytest.mark.parametrize(
    ("curves", "options", "label"),
    [
        ([SAME, SAME], {}, "published"),
        ([SAME, OTHER], {}, "published, another model (own panel)"),
        ([OTHER], {"others": "other models"}, "published, other models (own panel)"),
        ([OTHER], {"where": "same scale"}, "published, another model (same scale)"),
    ],
)
def test_the_legend_says_whose_values_are_published_and_where(curves, options, label):
    assert published_legend_label(curves, **options) == label


def test_shares_are_in_percent():
    assert percent(0.126) == "13 %"
    assert percent(-0.0126, "+.1f") == "-1.3 %"


def test_a_dollar_begins_no_formula():
    assert literal("$5 and $6") == r"\$5 and \$6"
