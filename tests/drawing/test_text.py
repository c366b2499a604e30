import pandas as pd
import pytest

from vitscope.claims.points import Published
from vitscope.drawing.figure import literal
from vitscope.drawing.legends import another_model, percent, published_label

SAME, OTHER = (Published("ViT", pd.DataFrame(), same) for same in (True, False))


@pytest.mark.parametrize(
    ("curves", "options", "label"),
    [
        ([SAME, SAME], {}, "published"),
        ([SAME, OTHER], {}, "published, another model (right axis)"),
        ([OTHER], {"others": "other models"}, "published, other models (right axis)"),
        ([SAME], {"always_own_axis": True}, "published (right axis)"),
        ([OTHER], {"axis": "upper axes"}, "published, another model (upper axes)"),
    ],
)
def test_the_legend_says_whose_values_are_published_and_where(curves, options, label):
    assert published_label(curves, **options) == label
    assert another_model(curves) == ("other" in label)


def test_shares_are_in_percent():
    assert percent(0.126) == "13 %"
    assert percent(-0.0126, "+.1f") == "-1.3 %"


def test_a_dollar_begins_no_formula():
    assert literal("$5 and $6") == r"\$5 and \$6"
