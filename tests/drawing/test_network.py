from itertools import pairwise

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from tests.helpers.drawing import styled
from tests.helpers.shown import is_whole, legend_labels
from vitscope.drawing.looks import BAND_COLORS, KIND_COLORS
from vitscope.drawing.network import plot_cut_points

KINDS = ["stem", "conv", "conv", "pool", "msa", "mlp"]
OPERATIONS = [3_000_000, 5_000_000, 7_000_000, 1_000_000, 2_000_000, 4_000_000]


def blocks(repeated: int = 1) -> pd.DataFrame:
    kinds = KINDS + KINDS[-2:] * (repeated - 1)
    later = len(kinds) - 3
    table = pd.DataFrame({"index": range(len(kinds)), "kind": kinds, "model": "net"})
    return table.assign(
        name=[f"blocks.{number}.part" for number in range(len(kinds))],
        stage=[0, 1, 1] + [2] * later,
        channels=[8, 8, 8] + [16] * later,
        height=[16] * 3 + [8] * later,
        width=[12] * 3 + [6] * later,
        operations=OPERATIONS + OPERATIONS[-2:] * (repeated - 1),
    )


def marks_of(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_marker() == "s"]


def test_bars_are_operations_in_the_colours_of_depth_bands() -> None:
    figure = styled(plot_cut_points, blocks().sample(frac=1, random_state=0), "Net")
    (axes,) = figure.axes
    (bars,) = axes.containers
    assert [bar.get_height() for bar in bars] == pytest.approx([3, 5, 7, 1, 2, 4])
    # The pool makes the map smaller: it has the colour of the blue bands, an MSA of the gray ones.
    shown = ["stem", "conv", "conv", "subsampling", "msa", "mlp"]
    expected = [to_hex(KIND_COLORS[kind]) for kind in shown]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == expected
    assert [to_hex(mark.get_color()) for mark in marks_of(axes)] == expected
    assert KIND_COLORS["msa"] == BAND_COLORS["msa"]
    assert KIND_COLORS["subsampling"] == BAND_COLORS["subsampling"]
    assert legend_labels(figure) == ["stem", "conv", "MSA", "subsampling", "MLP"]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(blocks()["name"])


def test_stages_are_labelled_with_their_size_and_a_line_between() -> None:
    (axes,) = styled(plot_cut_points, blocks(), "Net").axes
    labels = {text.get_text(): text.xy[0] for text in axes.texts if text.get_text()}
    assert labels == {"8\n16×12": 1.5, "16\n8×6": 4.0}
    lines = [line.get_xdata()[0] for line in axes.lines if line not in marks_of(axes)]
    assert lines == [0.5, 2.5]


@pytest.mark.parametrize("named", ["blocks.{}.part", "l{}", "a.very.long.name.of.a.module.{}"])
@pytest.mark.parametrize("repeated", [1, 12, 60])
def test_names_do_not_overlap_and_nothing_is_cut_off(repeated: int, named: str) -> None:
    table = blocks(repeated)
    names = [named.format(number) for number in table["index"]]
    figure = styled(plot_cut_points, table.assign(name=names), "Net")
    (axes,) = figure.axes
    boxes = sorted(
        (label.get_window_extent() for label in axes.get_xticklabels()), key=lambda box: box.x0
    )
    assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))
    lowest = min(mark.get_window_extent().y0 for mark in marks_of(axes))
    assert all(box.y1 <= lowest for box in boxes)
    boxes += [axes.title.get_window_extent(), axes.yaxis.label.get_window_extent()]
    assert all(is_whole(figure, box) for box in boxes)


def test_a_long_title_is_whole() -> None:
    label = ", ".join(f"ResNet ({share} % of the images)" for share in (6, 25, 100))
    figure = styled(plot_cut_points, blocks(1), label)
    (axes,) = figure.axes
    assert axes.get_title().split() == label.split()
    assert is_whole(figure, axes.title.get_window_extent())
