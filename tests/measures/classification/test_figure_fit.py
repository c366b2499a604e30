import pandas as pd
import pytest

from tests.helpers.shown import legend_labels
from tests.measures.classification.shown_fit import METRICS, marks, rows
from vitscope.claims.published import read_published
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of
from vitscope.measures.registry import kinds

FAMILIES = ["resnet", "vit", "pit", "swin", "alternet", "mixer"]
LABELS = ["ResNet-50", "ViT-Ti", "PiT-Ti", "Swin-Ti", "AlterNet-50", "MLP-Mixer"]
MEMBERS = [Member(f, label, f) for f, label in zip(FAMILIES, LABELS, strict=True)]
SERIES = {"resnet": "R", "vit": "ViT", "pit": "PiT", "swin": "Swin", "mixer": "Mixer"}
ERRORS = [5.5, 13.6, 13.4, 21.9, 5.4, 16.1]

TABLE = pd.concat(map(rows, FAMILIES, ERRORS)).sample(frac=1, random_state=0)
ORDER = [name for _, name in sorted(zip(ERRORS, FAMILIES, strict=True))]


@pytest.fixture
def points(points_file):
    def read(same_models=False):
        path = points_file.with_name("fig5.csv")
        return read_published(path, kinds()["fit"].published, SERIES, same_models)

    return read


@pytest.fixture
def drawn(drawn_from):
    def draw_it(members=MEMBERS, published=None, table=TABLE):
        return drawn_from("fit", {"fit": table}, members, published)

    return draw_it


def test_marks_and_intervals_show_the_table(drawn):
    indexed = TABLE.set_index(["model", "metric"])
    for axes, metric in zip(drawn().axes, METRICS, strict=True):
        for height, (mark, model) in enumerate(zip(marks(axes, "filled"), ORDER, strict=True)):
            row, look = indexed.loc[(model, metric)], look_of(model)
            assert mark.get_xydata().tolist() == [[row["value"], height]]
            assert (mark.get_color(), mark.get_marker()) == (look.color, look.marker)
            (segment,) = axes.collections[height].get_segments()
            if metric == "error_percent":
                expected = [[row["ci_low"], height], [row["ci_high"], height]]
                assert segment.tolist() == expected
            else:
                assert not segment.size


def test_models_are_in_the_order_of_their_error_the_smallest_on_top(drawn):
    error, loss = drawn().axes
    labels = [label.get_text() for label in error.get_yticklabels()]
    assert labels == [LABELS[FAMILIES.index(name)] for name in ORDER]
    assert error.get_ylim() == loss.get_ylim() == (5.6, -0.6)


@pytest.mark.parametrize("same_models", [True, False])
def test_published_points_are_open_and_of_other_models_on_axes_above(
    drawn, points, points_file, same_models
):
    figure = drawn(published=points(same_models))
    theirs = pd.read_csv(points_file.with_name("fig5.csv"))
    theirs = theirs.set_index(["model", "metric"])["value"]
    measured, others = figure.axes[:2], figure.axes[2:]
    assert len(others) == (0 if same_models else 2)
    for axes, metric in zip(others or measured, METRICS, strict=True):
        drawn_values = [mark.get_xdata().tolist() for mark in marks(axes, "open")]
        expected = [[theirs[SERIES[name], metric]] for name in ORDER if name in SERIES]
        assert drawn_values == expected
        heights = [mark.get_ydata()[0] for mark in marks(axes, "open")]
        rows_of = [height for height, name in enumerate(ORDER) if name in SERIES]
        # Below the measured ones, and above those of the next model.
        assert all(0 < h - row < 0.5 for h, row in zip(heights, rows_of, strict=True))
    for axes in others:
        assert axes.xaxis.get_label_position() == "top"
        assert axes.get_xlabel().startswith("Published ")
        assert not marks(axes, "filled")
    label = "published" if same_models else "published, other models (upper axes)"
    labels = legend_labels(figure)
    assert labels == ["measured", label, "95 % interval"]
