import numpy as np
import pandas as pd

from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels


def _curves(axes):
    """Return the lines of more than two points: the positions, then the class token."""
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


def test_panels_show_the_table_on_one_scale(table):
    joined = table[table["kind"] != "stem"]
    of_positions = joined.assign(tokens="positions", ratio=1 + 3 * joined["depth"])
    vit = of_positions[of_positions["model"] == "vit"]
    of_class = vit.assign(tokens="class_token", ratio=5 - 4 * vit["depth"])
    both = pd.concat([of_positions, of_class])
    ratios = both.assign(ci_low=0.9 * both["ratio"], ci_high=1.1 * both["ratio"])
    figure = drawn_from("skip_ratio", {"skip_ratio": ratios, "blocks": table}, (VIT, RESNET))
    curves = [_curves(axes) for axes in figure.axes]
    assert [len(each) for each in curves] == [2, 1]
    for axes, model in zip(figure.axes, ["vit", "resnet"], strict=True):
        rows = ratios[(ratios["model"] == model) & (ratios["tokens"] == "positions")]
        rows = rows.sort_values("index")
        drawn = _curves(axes)[0]
        np.testing.assert_array_equal(drawn.get_xydata(), rows[["depth", "ratio"]])
        assert axes.get_yscale() == "log"
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert {"positions", "class token"} <= {*legend_labels(figure)}
