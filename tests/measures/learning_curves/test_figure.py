import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from tests.helpers.shown import legend_labels
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of

MEMBERS = [
    Member("resnet", "ResNet-50", "resnet"),
    Member("vit", "ViT-Ti", "vit"),
    Member("swin", "Swin-Ti", "swin"),
]
COLUMNS = (("loss", "test_loss"), ("training_accuracy", "test_accuracy"), ("learning_rate",))


def training(model: str, epochs: int, whole: bool = True) -> pd.DataFrame:
    """Return the curves of a training, some of which were not recorded unless it is whole."""
    share = np.arange(epochs + 1) / epochs
    curves = pd.DataFrame(
        {
            "model": model,
            "epoch": range(epochs + 1),
            "loss": 4.5 - 3 * share,
            "training_accuracy": 0.4 * share if whole else np.nan,
            "learning_rate": 2e-3 * (1 - share),
            "test_loss": 4.2 - 2 * share if whole else np.nan,
            "test_accuracy": 0.7 * share,
            "snapshots": None,
        }
    )
    curves.loc[0, "loss":"test_accuracy"] = np.nan
    curves.loc[[0, 1, epochs], "snapshots"] = ["init", "warmup", "end"]
    return curves


@pytest.fixture
def drawn(drawn_from):
    def draw_it(members, *curves):
        table = pd.concat(curves).sample(frac=1, random_state=0)
        return drawn_from("training", {"learning_curves": table}, members)

    return draw_it


def test_curves_show_the_table_in_order(drawn):
    curves = [training("resnet", 8), training("vit", 300, whole=False)]
    figure = drawn(MEMBERS[:2], *curves)
    panels = np.array(figure.axes).reshape(3, 2)
    for column, (table, member) in enumerate(zip(curves, MEMBERS, strict=False)):
        for axes, names in zip(panels[:, column], COLUMNS, strict=True):
            lines = axes.lines[-len(names) :]
            for line, name in zip(lines, names, strict=True):
                expected = table[["epoch", name]].to_numpy(np.float64)
                np.testing.assert_array_equal(line.get_xydata(), expected)
                assert to_hex(line.get_color()) == look_of(member.family).color
            solid = [line.get_linestyle() for line in lines]
            assert solid == ["-", "--"][: len(names)]
            assert axes.get_xlim() == (0, table["epoch"].max())


def test_snapshots_are_marked_in_every_panel(drawn):
    figure = drawn(MEMBERS[:1], training("resnet", 8))
    for axes, names in zip(figure.axes, COLUMNS, strict=True):
        marks = axes.lines[: -len(names)]
        assert [line.get_xdata()[0] for line in marks] == [0, 1, 8]
    assert legend_labels(figure) == ["training, on augmented images", "test", "snapshot"]
