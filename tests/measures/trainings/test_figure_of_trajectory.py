import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels


def way(model: str, moments: int, turn: float, warmup: int | None = 1) -> pd.DataFrame:
    """Return a trajectory that turns evenly while it comes nearer."""
    order = np.arange(moments)
    share = order / (moments - 1)
    angle = np.where(order < moments - 1, turn * share, 0)
    table = pd.DataFrame({"order": order, "radius": 1 - share, "angle": angle})
    table = table.assign(moment=order.astype(str), ends_warmup=order == warmup)
    return table.assign(model=model, source="history")


def drawn(members, *ways):
    table = pd.concat(ways).sample(frac=1, random_state=0)
    return drawn_from("trajectory", {"trajectory": table}, members)


def test_lines_and_markers_show_the_table_in_order():
    ways = [way("resnet", 5, 1.2), way("vit", 9, 1.5)]
    (axes,) = drawn([RESNET, VIT], *ways).axes
    lines = [line for line in axes.lines if line.get_marker() == "None"]
    for line, scatter, points in zip(lines, axes.collections, ways, strict=True):
        expected = points[["angle", "radius"]].to_numpy()
        np.testing.assert_array_equal(line.get_xydata(), expected)
        # The first and the last weights have marks of their own, which all models share.
        np.testing.assert_array_equal(scatter.get_offsets(), expected[1:-1])


def test_start_end_and_the_end_of_the_warmup_are_marked():
    points = way("vit", 6, 1.5, warmup=2)
    figure = drawn([RESNET, VIT], way("resnet", 5, 1.2, warmup=None), points)
    marks = [line.get_xydata().tolist() for line in figure.axes[0].lines if len(line.get_xydata())]
    assert [[0.0, 1.0]] in marks
    assert [[0.0, 0.0]] in marks
    assert points.loc[[2], ["angle", "radius"]].to_numpy().tolist() in marks


def test_an_end_of_warmup_that_is_not_known_has_no_entry():
    others = way("resnet", 5, 1.2, warmup=1)
    figure = drawn([VIT], way("vit", 5, 1.2, warmup=None), others)
    assert legend_labels(figure) == ["ViT-Ti", "first weights", "last weights"]


@pytest.mark.parametrize(("turn", "degrees"), [(1.5, 90), (1.9, 180)])
def test_the_panel_holds_all_that_is_drawn(turn, degrees):
    far = way("vit", 8, turn)
    far["radius"] *= 1.4
    (axes,) = drawn([VIT], far).axes
    assert (axes.get_thetamin(), axes.get_thetamax()) == (0, degrees)
    assert (axes.get_rmin(), axes.get_rmax()) == (0, 1.4)
