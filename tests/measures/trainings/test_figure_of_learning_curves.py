import numpy as np
import pandas as pd

from tests.helpers.drawing import RESNET, VIT, drawn_from

MEMBERS = (RESNET, VIT)
COLUMNS = (("loss", "test_loss"), ("training_accuracy", "test_accuracy"), ("learning_rate",))


def training(model: str, epochs: int, whole: bool = True) -> pd.DataFrame:
    """Return the curves of a training, some of which were not recorded unless it is whole."""
    share = np.arange(epochs + 1) / epochs
    curves = pd.DataFrame({"epoch": range(epochs + 1), "loss": 4.5 - 3 * share})
    curves["training_accuracy"] = 0.4 * share if whole else np.nan
    curves["learning_rate"] = 2e-3 * (1 - share)
    curves["test_loss"] = 4.2 - 2 * share if whole else np.nan
    curves = curves.assign(test_accuracy=0.7 * share, model=model, snapshots=None)
    curves.loc[0, "loss":"test_accuracy"] = np.nan
    curves.loc[[0, 1, epochs], "snapshots"] = ["init", "warmup", "end"]
    return curves


def drawn(members, *curves):
    table = pd.concat(curves).sample(frac=1, random_state=0)
    return drawn_from("training", {"learning_curves": table}, members)


def test_curves_show_the_table_in_order():
    curves = [training("resnet", 8), training("vit", 300, whole=False)]
    figure = drawn(MEMBERS, *curves)
    panels = np.array(figure.axes).reshape(3, 2)
    for column, table in enumerate(curves):
        for axes, names in zip(panels[:, column], COLUMNS, strict=True):
            # A line without values is not drawn.
            there = [name for name in names if table[name].notna().any()]
            lines = axes.lines[-len(there) :]
            for line, name in zip(lines, there, strict=True):
                expected = table[["epoch", name]].to_numpy(np.float64)
                np.testing.assert_array_equal(line.get_xydata(), expected)


def test_snapshots_are_marked_in_every_panel():
    figure = drawn(MEMBERS[:1], training("resnet", 8))
    for axes, names in zip(figure.axes, COLUMNS, strict=True):
        marks = axes.lines[: -len(names)]
        assert [line.get_xdata()[0] for line in marks] == [0, 1, 8]
