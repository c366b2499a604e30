"""The picture of claims shows every verdict, published beside measured."""

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from tests.helpers.claims import count_variances, published_variances, variances
from vitscope.drawing.looks import VERDICT_COLORS
from vitscope.drawing.saving import style
from vitscope.drawing.verdicts import plot
from vitscope.package_data import STYLE

LABELS = {"m": "Mine", "n": "Other"}


@pytest.fixture
def claims():
    rising = variances("m", ["stem", *["msa"] * 8], [8] * 9, list(range(9)))
    theirs = published_variances([0, 0.5, 1], [1.0, 2.0, 3.0])
    pairs = count_variances(rising, theirs).assign(
        model="n", versus="m", claim="of_two", statement="Other is more", holds="open"
    )
    both = pd.concat([count_variances(rising, theirs), pairs], ignore_index=True)
    return both.assign(published_verdict="yes")


@pytest.mark.parametrize("published", [True, False])
def test_the_legend_is_within_a_page_of_two_models(claims, published):
    told = [*VERDICT_COLORS] if published else ["yes", "open"]
    row = claims.iloc[:1].assign(published_verdict="yes" if published else None)
    claims = pd.concat([row.assign(claim=said, holds=said) for said in told])
    with style(STYLE):
        figure = plot(claims, LABELS)
        figure.draw_without_rendering()
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == len(told) + published
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0
    assert box.y1 < figure.axes[0].get_window_extent().y0
    # Without published points a verdict is a whole cell.
    width = 0.42 if published else 0.84
    assert {round(each.get_width(), 9) for each in figure.axes[0].patches} == {width}


def test_each_claim_is_a_cell_of_two_halves(claims):
    with style(STYLE):
        figure = plot(claims, LABELS)
        figure.draw_without_rendering()
    (axes,) = figure.axes
    columns = [label.get_text() for label in axes.get_xticklabels()]
    assert columns == ["Mine", "Other –\nMine"]
    rows = [" ".join(label.get_text().split()) for label in axes.get_yticklabels()]
    assert rows == list(dict.fromkeys(claims["statement"]))
    halves = [each for each in axes.patches if isinstance(each, Rectangle)]
    assert len(halves) == 2 * len(claims.drop_duplicates(["model", "versus", "claim"]))
    measured = {
        (round(each.get_x()), round(each.get_y() + 0.36)): to_hex(each.get_facecolor())
        for each in halves
        if each.get_x() == round(each.get_x())
    }
    for row in claims[claims["holds"].notna()].to_dict("records"):
        column = int(isinstance(row["versus"], str))
        place = column, rows.index(row["statement"])
        assert measured[place] == VERDICT_COLORS[row["holds"]]
