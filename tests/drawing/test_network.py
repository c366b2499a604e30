from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from tests.helpers.drawing import styled
from tests.helpers.shown import is_whole, legend_labels
from vitscope.drawing.looks import BAND_COLORS, KIND_COLORS
from vitscope.drawing.network import plot_cut_points, say_costs

KINDS = ["stem", "conv", "conv", "pool", "msa", "mlp"]
OPERATIONS = [3_000_000, 5_000_000, 7_000_000, 1_000_000, 2_000_000, 4_000_000]
PARAMETERS = [100, 400, 500, 0, 600, 800]


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
        parameters=PARAMETERS + PARAMETERS[-2:] * (repeated - 1),
    )


def test_blocks_and_bars_of_costs_are_in_the_colours_of_depth_bands() -> None:
    figure = styled(plot_cut_points, blocks().sample(frac=1, random_state=0), "Net")
    *_, parameters = figure.axes
    heights = [[bar.get_height() for bar in axes.containers[0]] for axes in figure.axes]
    assert heights[0] == [1] * 6
    assert heights[1] == pytest.approx([100 * each / 22 for each in (3, 5, 7, 1, 2, 4)])
    assert heights[2] == pytest.approx([100 * each / 2400 for each in PARAMETERS])
    # The pool makes the map smaller: it has the colour of the blue bands, an MSA of the gray ones.
    shown = ["stem", "conv", "conv", "subsampling", "msa", "mlp"]
    expected = [to_hex(KIND_COLORS[kind]) for kind in shown]
    for axes in figure.axes:
        assert [to_hex(bar.get_facecolor()) for bar in axes.containers[0]] == expected
    assert KIND_COLORS["msa"] == BAND_COLORS["msa"]
    assert KIND_COLORS["subsampling"] == BAND_COLORS["subsampling"]
    assert legend_labels(figure) == ["stem", "conv", "MSA", "subsampling", "MLP"]
    assert [label.get_text() for label in parameters.get_xticklabels()] == list(blocks()["name"])


def test_stages_are_labelled_with_size_and_costs_and_a_line_between() -> None:
    figure = styled(plot_cut_points, blocks(), "Net")
    said = [
        {text.get_text(): text.xy[0] for text in axes.texts if text.get_text()}
        for axes in figure.axes
    ]
    assert said == [
        {"8\n16×12": 1.5, "16\n8×6": 4.0},
        # 12 and 7 of 22 million, 900 and 1400 of 2400.
        {"55 %": 1.5, "32 %": 4.0},
        {"38 %": 1.5, "58 %": 4.0},
    ]
    for axes in figure.axes[1:]:
        assert [line.get_xdata()[0] for line in axes.lines] == [0.5, 2.5]


def test_the_title_says_what_attention_costs() -> None:
    figure = styled(plot_cut_points, blocks(), "Net")
    # 600 of 2400, 2 of 22.
    share = "MSAs, 1 of 5 blocks: 25 % of the parameters, 9 % of the multiply-adds"
    said = f"Net 2.4 k parameters, 22 M multiply-adds {share}"
    assert " ".join(figure.axes[0].get_title().split()) == said
    assert say_costs(blocks().assign(kind="conv"))[1] == "no MSAs"


@pytest.mark.parametrize("model", ["resnet", "alternet", "swin", "vit"])
def test_shares_add_up_to_those_of_the_block_table(model: str) -> None:
    known = pd.read_csv(Path(__file__).parents[1] / "expected" / "blocks.csv")
    table = known[known["model"] == model]
    figure = styled(plot_cut_points, table, model)
    for axes, cost in zip(figure.axes[1:], ("operations", "parameters"), strict=True):
        drawn = [bar.get_height() for bar in axes.containers[0]]
        assert sum(drawn) == pytest.approx(100)
        assert drawn == pytest.approx((100 * table[cost] / table[cost].sum()).tolist())
    attention = table[table["kind"] == "msa"]
    share = attention["parameters"].sum() / table["parameters"].sum()
    title = " ".join(figure.axes[0].get_title().split())
    assert ("no MSAs" in title) if attention.empty else (f"{100 * share:.0f} % of the" in title)


@pytest.mark.parametrize("named", ["blocks.{}.part", "l{}", "a.very.long.name.of.a.module.{}"])
@pytest.mark.parametrize("repeated", [1, 12, 60])
def test_names_do_not_overlap_and_nothing_is_cut_off(repeated: int, named: str) -> None:
    table = blocks(repeated)
    names = [named.format(number) for number in table["index"]]
    figure = styled(plot_cut_points, table.assign(name=names), "Net")
    row, *_, axes = figure.axes
    boxes = sorted(
        (label.get_window_extent() for label in axes.get_xticklabels()), key=lambda box: box.x0
    )
    assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))
    assert all(box.y1 <= axes.get_window_extent().y0 for box in boxes)
    titles = [row.title.get_window_extent(), axes.yaxis.label.get_window_extent()]
    sizes = [text.get_window_extent() for text in row.texts if text.get_text()]
    assert all(box.y1 <= titles[0].y0 for box in sizes)
    boxes += titles
    assert all(is_whole(figure, box) for box in boxes)


def test_a_long_title_is_whole() -> None:
    label = ", ".join(f"ResNet ({share} % of the images)" for share in (6, 25, 100))
    figure = styled(plot_cut_points, blocks(1), label)
    axes = figure.axes[0]
    assert axes.get_title().split()[: len(label.split())] == label.split()
    assert is_whole(figure, axes.title.get_window_extent())
