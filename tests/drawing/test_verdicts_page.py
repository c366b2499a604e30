from itertools import combinations

import pandas as pd
import pytest

from tests.helpers.claims import count_variances, published_variances, variances
from tests.helpers.drawing import styled
from tests.helpers.shown import is_whole
from vitscope.claims.verdicts import say_how_many
from vitscope.drawing.looks import VERDICT_LOOKS
from vitscope.drawing.verdicts_page import plot_verdicts

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


def said(figure, left, right):
    """Return the texts that begin between two edges, in inches, from top to bottom."""
    texts = [each for each in figure.axes[0].texts if left <= each.get_position()[0] / 72 < right]
    return [
        each.get_text().replace("\n", " ")
        for each in sorted(texts, key=lambda t: -t.get_window_extent().y1)
    ]


def test_each_claim_is_a_row_with_its_verdicts_in_colours(claims):
    figure = styled(plot_verdicts, claims, LABELS)
    statements = list(dict.fromkeys(claims["statement"]))
    assert said(figure, 0.85, 3.7)[-len(statements) :] == statements
    measured = [each for each in figure.axes[0].texts if each.get_position()[0] >= 72 * 4.4]
    for row in claims.drop_duplicates(["model", "versus", "claim"]).to_dict("records"):
        if pd.isna(row["holds"]):
            continue
        look = VERDICT_LOOKS[row["holds"]]
        name = "Other / Mine" if isinstance(row["versus"], str) else "Mine"
        name += say_how_many(row)
        same = [each for each in measured if each.get_text() == f"{look.mark} {name}"]
        assert {each.get_color() for each in same} == {look.color}


def test_what_is_published_stands_beside_what_is_measured(claims):
    mark = VERDICT_LOOKS["yes, in this network"].mark
    named = claims.assign(published_series="Theirs")
    assert set(said(styled(plot_verdicts, named, LABELS), 3.7, 4.4)) == {
        "Published",
        f"{mark} Theirs",
    }
    without = named.assign(published_verdict=None)
    assert said(styled(plot_verdicts, without, LABELS), 3.7, 4.4) == []


def test_everything_is_within_the_page_and_nothing_overlaps(claims):
    told = [*VERDICT_LOOKS]
    row = claims.iloc[:1]
    many = [row.assign(claim=each, holds=each, statement=f"{each} {60 * 'a '}") for each in told]
    figure = styled(plot_verdicts, pd.concat([*many, claims]), LABELS)
    boxes = [each.get_window_extent() for each in figure.axes[0].texts]
    assert all(is_whole(figure, box) for box in boxes)
    for one, other in combinations(boxes, 2):
        assert not one.padded(-1).overlaps(other.padded(-1))
    assert min(each.get_fontsize() for each in figure.axes[0].texts) >= 6


def test_moments_of_training_are_named(claims):
    row = claims.iloc[:1]
    at = [row.assign(snapshot=each) for each in ("warmup", "end")]
    texts = said(styled(plot_verdicts, pd.concat(at), LABELS), 4.4, 8)
    assert "end of warm-up:" in texts
    assert "end of training:" in texts
