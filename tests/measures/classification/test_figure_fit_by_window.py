import pandas as pd
import pytest

from tests.helpers.shown import legend_labels
from tests.measures.classification.shown_fit import METRICS, marks, rows
from vitscope.claims.published import read_published
from vitscope.drawing.figure import Member
from vitscope.measures.registry import kinds

MODELS = ["small", "middle", "nearly", "whole"]
LABELS = ["ViT 3×3", "ViT 5×5", "ViT 8×8", "ViT global"]
MEMBERS = [Member(m, label, "vit") for m, label in zip(MODELS, LABELS, strict=True)]
SERIES = {"small": "3x3", "middle": "5x5", "whole": "8x8"}
ERRORS = [23.5, 20.0, 24.5, 26.0]

TABLE = pd.concat(map(rows, MODELS, ERRORS)).sample(frac=1, random_state=0)


@pytest.fixture
def points(points_file):
    def read(same_models=False):
        path = points_file.with_name("fig7a.csv")
        return read_published(path, kinds()["fit_by_window"].published, SERIES, same_models)

    return read


@pytest.fixture
def drawn(drawn_from):
    def draw_it(members=MEMBERS, published=None, table=TABLE):
        return drawn_from("fit_by_window", {"fit": table}, members, published)

    return draw_it


def test_models_stand_in_the_order_that_is_given(drawn):
    indexed = TABLE.set_index(["model", "metric"])
    for members in (MEMBERS, MEMBERS[::-1]):
        for axes, metric in zip(drawn(members).axes, METRICS, strict=True):
            ticks = [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]
            assert ticks == [member.label for member in members]
            values = [indexed.loc[(each.model, metric), "value"] for each in members]
            found = [mark.get_xydata().tolist() for mark in marks(axes, "filled")]
            assert found == [[[place, value]] for place, value in enumerate(values)]
            assert axes.lines[0].get_ydata().tolist() == values


def test_the_error_has_an_interval_and_the_loss_has_none(drawn):
    error, loss = drawn().axes
    assert (error.get_ylabel(), loss.get_ylabel()) == ("Test error (%)", "Training NLL")
    for place, value in enumerate(ERRORS):
        (segment,) = error.collections[place].get_segments()
        assert segment.tolist() == [[place, value - 1], [place, value + 1.5]]
        assert not loss.collections[place].get_segments()[0].size


@pytest.mark.parametrize("same_models", [True, False])
def test_published_points_are_open_and_of_other_models_on_axes_on_the_right(
    drawn, points, points_file, same_models
):
    figure = drawn(published=points(same_models))
    theirs = pd.read_csv(points_file.with_name("fig7a.csv"))
    theirs = theirs.set_index(["model", "metric"])["value"]
    measured, others = figure.axes[:2], figure.axes[2:]
    assert len(others) == (0 if same_models else 2)
    for axes, metric in zip(others or measured, METRICS, strict=True):
        found = [mark.get_xydata()[0].tolist() for mark in marks(axes, "open")]
        assert [value for _, value in found] == [theirs[name, metric] for name in SERIES.values()]
        places = [MODELS.index(model) for model in SERIES]
        # Right of the measured ones, and left of those of the next model.
        assert all(0 < at - place < 0.5 for (at, _), place in zip(found, places, strict=True))
    names = ["Published test error (%)", "Published training NLL"]
    assert [axes.get_ylabel() for axes in others] == ([] if same_models else names)
    label = "published" if same_models else "published, other models (right axis)"
    assert legend_labels(figure) == ["measured", label, "95 % interval"]
