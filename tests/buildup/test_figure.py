from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from tests.buildup.test_table import PLAN, results
from vitscope.buildup.figure import animate_buildup, plot_buildup, read_buildup_steps
from vitscope.buildup.table import tabulate_buildup
from vitscope.drawing.saving import style
from vitscope.errors import VitscopeError
from vitscope.package_data import PUBLISHED_POINTS, STYLE

PUBLISHED = PUBLISHED_POINTS / "fig12a.csv"


@pytest.fixture(autouse=True)
def drawing() -> Iterator[None]:
    with style(STYLE):
        yield


def marks(axes: Axes) -> list[tuple[float, float, bool]]:
    """Return the markers: where they are, and whether they are filled."""
    shown = [line for line in axes.get_lines() if line.get_visible()]
    lines = [line for line in shown if line.get_marker() == "o"]
    return [
        (
            float(line.get_xdata()[0]),
            float(line.get_ydata()[0]),
            to_hex(line.get_markerfacecolor()) != "#ffffff",
        )
        for line in lines
    ]


def test_what_is_rejected_is_open_and_not_joined() -> None:
    table = tabulate_buildup("grown", PLAN, results(100, 110, 104, 120))
    (axes,) = plot_buildup(table, "ResNet", None).axes
    found = marks(axes)
    assert [(x, good) for x, _, good in found] == [(0, True), (1, True), (2, False), (3, True)]
    assert [y for _, y, _ in found] == pytest.approx([50, 55, 52, 60])
    way = next(line for line in axes.get_lines() if len(line.get_xdata()) == 3)
    assert list(way.get_xdata()) == [0, 1, 3]
    assert list(way.get_ydata()) == pytest.approx([50, 55, 60])
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["none (0)", "c4 (1)", "c3 (2)", "c2 (2)"]
    (intervals,) = axes.collections
    low, high = intervals.get_segments()[0][:, 1]
    assert (low, high) == pytest.approx((43.13, 56.87), abs=0.01)


def test_published_steps_stand_beside_the_measured_ones() -> None:
    table = tabulate_buildup("grown", PLAN, results(100, 110, 104, 120))
    left, right = plot_buildup(table, "ResNet", read_buildup_steps(PUBLISHED)).axes
    assert right.get_title() == "published: AlterNet-50, CIFAR-100"
    assert left.get_ylabel() == right.get_ylabel() == "Accuracy (%)"
    filled = [(x, y) for x, y, good in marks(right) if good]
    assert [y for _, y in filled] == pytest.approx([82.48, 83.45, 83.66, 83.77, 84.02])
    names = [label.get_text() for label in right.get_xticklabels()]
    assert [names[int(x)] for x, _ in filled] == [
        "none (0)",
        "c4 (1)",
        "c4 (2)",
        "c3 (3)",
        "c2 (4)",
    ]
    assert names == [
        "none (0)",
        *["c4 (1)", "c4 (2)", "c3 (3)", "c3 (4)", "c3 (5)", "c2 (4)", "c2 (5)", "c1 (5)"],
    ]


def test_another_file_of_points_is_refused() -> None:
    with pytest.raises(VitscopeError, match=r"Cannot read a published build-up from .*fig9\.csv"):
        read_buildup_steps(PUBLISHED_POINTS / "fig9.csv")


def test_a_video_shows_one_more_step_in_each_frame() -> None:
    table, theirs = (
        tabulate_buildup("grown", PLAN, results(100, 110, 104, 120)),
        read_buildup_steps(PUBLISHED),
    )
    whole = [marks(axes) for axes in plot_buildup(table, "ResNet", theirs).axes]
    limits = [axes.get_ylim() for axes in plot_buildup(table, "ResNet", theirs).axes]
    for shown in (1, 3, 6):
        axes = plot_buildup(table, "ResNet", theirs, shown=shown).axes
        assert [marks(each) for each in axes] == [each[:shown] for each in whole]
        assert [each.get_ylim() for each in axes] == limits
    frames = [*animate_buildup(table, "ResNet", theirs)]
    assert len(frames) == len(theirs) == 9
    assert [frame.seconds for frame in frames] == [1] * 8 + [3]
    pictures = [np.asarray(frame.picture) for frame in frames]
    assert len({picture.shape for picture in pictures}) == 1
    # The published steps are on the right; the four measured ones are all there by the fourth.
    half = pictures[0].shape[1] // 2
    changed = [(a != b).any(2).any(0) for a, b in pairwise(pictures)]
    assert [bool(columns[:half].any()) for columns in changed] == [True] * 3 + [False] * 5
    assert all(columns[half:].any() for columns in changed)
