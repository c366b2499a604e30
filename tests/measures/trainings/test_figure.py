import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels

MEMBERS = (RESNET, VIT)
COLUMNS = (("loss", "test_loss"), ("training_accuracy", "test_accuracy"), ("learning_rate",))
TABLES = {"training": "learning_curves", "trajectory": "trajectory"}


def drawn(kind, members, *of_models):
    table = pd.concat(of_models).sample(frac=1, random_state=0)
    return drawn_from(kind, {TABLES[kind]: table}, members)


def training(model: str, epochs: int, whole: bool = True) -> pd.DataFrame:
    """Return the curves of a training; unless it is `whole`, some curves were not recorded."""
    share = np.arange(epochs + 1) / epochs
    curves = pd.DataFrame({"epoch": range(epochs + 1), "loss": 4.5 - 3 * share})
    curves["training_accuracy"] = 0.4 * share if whole else np.nan
    curves["learning_rate"] = 2e-3 * (1 - share)
    curves["test_loss"] = 4.2 - 2 * share if whole else np.nan
    curves = curves.assign(test_accuracy=0.7 * share, model=model, snapshots=None)
    curves.loc[0, "loss":"test_accuracy"] = np.nan
    curves.loc[[0, 1, epochs], "snapshots"] = ["init", "warmup", "end"]
    return curves


def test_curves_show_the_table_in_order_and_snapshots_are_marked():
    curves = [training("resnet", 8), training("vit", 300, whole=False)]
    figure = drawn("training", MEMBERS, *curves)
    panels = np.array(figure.axes).reshape(3, 2)
    for column, table in enumerate(curves):
        for axes, names in zip(panels[:, column], COLUMNS, strict=True):
            # A line without values is not drawn.
            there = [name for name in names if table[name].notna().any()]
            snapshots, lines = axes.lines[: -len(there)], axes.lines[-len(there) :]
            assert [mark.get_xdata()[0] for mark in snapshots] == [0, 1, len(table) - 1]
            for line, name in zip(lines, there, strict=True):
                expected = table[["epoch", name]].to_numpy(np.float64)
                np.testing.assert_array_equal(line.get_xydata(), expected)


def way(model: str, moments: int, turn: float, warmup: int | None = 1) -> pd.DataFrame:
    """Return a trajectory that turns evenly while it comes nearer."""
    order = np.arange(moments)
    share = order / (moments - 1)
    angle = np.where(order < moments - 1, turn * share, 0)
    table = pd.DataFrame({"order": order, "radius": 1 - share, "angle": angle})
    table = table.assign(moment=order.astype(str), ends_warmup=order == warmup)
    return table.assign(model=model, source="history")


def test_lines_and_markers_show_the_table_in_order():
    ways = [way("resnet", 5, 1.2), way("vit", 9, 1.5)]
    (axes,) = drawn("trajectory", MEMBERS, *ways).axes
    lines = [line for line in axes.lines if line.get_marker() == "None"]
    for line, scatter, points in zip(lines, axes.collections, ways, strict=True):
        expected = points[["angle", "radius"]].to_numpy()
        np.testing.assert_array_equal(line.get_xydata(), expected)
        # The first and the last weights have marks of their own, which all models share.
        np.testing.assert_array_equal(scatter.get_offsets(), expected[1:-1])


def test_start_end_and_the_end_of_the_warmup_are_marked():
    points = way("vit", 6, 1.5, warmup=2)
    figure = drawn("trajectory", MEMBERS, way("resnet", 5, 1.2, warmup=None), points)
    marks = [line.get_xydata().tolist() for line in figure.axes[0].lines if len(line.get_xydata())]
    assert [[0.0, 1.0]] in marks
    assert [[0.0, 0.0]] in marks
    assert points.loc[[2], ["angle", "radius"]].to_numpy().tolist() in marks


def test_an_end_of_warmup_that_is_not_known_has_no_entry():
    others = way("resnet", 5, 1.2, warmup=1)
    figure = drawn("trajectory", [VIT], way("vit", 5, 1.2, warmup=None), others)
    assert legend_labels(figure) == ["ViT-Ti", "first weights", "last weights"]


@pytest.mark.parametrize(("turn", "degrees"), [(1.5, 90), (1.9, 180)])
def test_the_panel_holds_all_that_is_drawn(turn, degrees):
    far = way("vit", 8, turn)
    far["radius"] *= 1.4
    (axes,) = drawn("trajectory", [VIT], far).axes
    assert (axes.get_thetamin(), axes.get_thetamax()) == (0, degrees)
    assert (axes.get_rmin(), axes.get_rmax()) == (0, 1.4)
