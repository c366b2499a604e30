"""Errors and losses, by model and by window: measured marks are filled, published ones open."""

import numpy as np
import pandas as pd
import pytest

from vitscope.claims.published import read_published
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of
from vitscope.measures.registry import kinds

METRICS = ("error_percent", "nll_train")
FAMILIES = ["resnet", "vit", "pit", "swin", "alternet", "mixer"]
MEMBERS = [Member(family, family, family) for family in FAMILIES]
ERRORS = [5.5, 13.6, 13.4, 21.9, 5.4, 16.1]
# From the smallest error to the largest.
ORDER = [name for _, name in sorted(zip(ERRORS, FAMILIES, strict=True))]
SERIES = {
    "fit": {"resnet": "R", "vit": "ViT", "pit": "PiT", "swin": "Swin", "mixer": "Mixer"},
    "fit_by_window": {"resnet": "3x3", "vit": "5x5", "mixer": "8x8"},
}
FILES = {"fit": "fig5.csv", "fit_by_window": "fig7a.csv"}


def rows(model: str, error: float) -> pd.DataFrame:
    """Return the rows of a model: an error with an interval, and a loss without."""
    return pd.DataFrame(
        {
            "model": model,
            "metric": METRICS,
            "images": [2000, 1000],
            "value": [error, 0.7 + error / 50],
            "ci_low": [error - 1, np.nan],
            "ci_high": [error + 1.5, np.nan],
        }
    )


TABLE = pd.concat(map(rows, FAMILIES, ERRORS)).sample(frac=1, random_state=0)


def marks(axes, face):
    """Return the marks of an axis, the measured ones filled and the published ones open."""
    lines = [line for line in axes.lines if line.get_marker() != "None"]
    return [line for line in lines if (line.get_markerfacecolor() == "white") == (face == "open")]


def placed(kind, place, value):
    """Return where a value is marked: models stand one below or one beside the other."""
    return [value, place] if kind == "fit" else [place, value]


@pytest.mark.parametrize(("kind", "order"), [("fit", ORDER), ("fit_by_window", FAMILIES)])
def test_marks_and_intervals_show_the_table(drawn_from, kind, order):
    figure = drawn_from(kind, {"fit": TABLE}, MEMBERS)
    indexed = TABLE.set_index(["model", "metric"])
    for axes, metric in zip(figure.axes, METRICS, strict=True):
        for place, (mark, model) in enumerate(zip(marks(axes, "filled"), order, strict=True)):
            row, look = indexed.loc[(model, metric)], look_of(Member(model, model, model))
            assert mark.get_xydata().tolist() == [placed(kind, place, row["value"])]
            assert (mark.get_color(), mark.get_marker()) == (look.color, look.marker)
            (segment,) = axes.collections[place].get_segments()
            if metric == "error_percent":
                ends = [placed(kind, place, row[end]) for end in ("ci_low", "ci_high")]
                assert segment.tolist() == ends
            else:
                assert not segment.size
    error, loss = figure.axes
    axis = error.yaxis if kind == "fit" else error.xaxis
    assert [label.get_text() for label in axis.get_ticklabels()] == order
    if kind == "fit":
        # The smallest error is on top.
        assert error.get_ylim() == loss.get_ylim() == (5.6, -0.6)


@pytest.mark.parametrize("same_models", [True, False])
@pytest.mark.parametrize(("kind", "order"), [("fit", ORDER), ("fit_by_window", FAMILIES)])
def test_published_points_are_open_and_of_other_models_on_axes_of_their_own(
    drawn_from, points_file, kind, order, same_models
):
    file, series = points_file.with_name(FILES[kind]), SERIES[kind]
    published = read_published(file, kinds()[kind].published, series, same_models)
    figure = drawn_from(kind, {"fit": TABLE}, MEMBERS, published)
    theirs = pd.read_csv(file).set_index(["model", "metric"])["value"]
    measured, others = figure.axes[:2], figure.axes[2:]
    assert len(others) == (0 if same_models else 2)
    for axes, metric in zip(others or measured, METRICS, strict=True):
        shown = [place for place, name in enumerate(order) if name in series]
        values = [theirs[series[order[place]], metric] for place in shown]
        for mark, place, value in zip(marks(axes, "open"), shown, values, strict=True):
            (point,) = mark.get_xydata().tolist()
            at = point[kind == "fit"]
            assert point == placed(kind, at, value)
            # Beside the measured one, and before the next model.
            assert 0 < at - place < 0.5
